# frozen_string_literal: true

# The Ruby client behind the protocol of tests/clients/README.md: a line of JSON asks, a line of JSON answers.
require "json"
require_relative "../../sdk/clients/ruby/lib/quiver"

SECONDS = { "delay_ms" => :delay, "unique_ms" => :unique, "debounce_ms" => :debounce, "timeout_ms" => :timeout, "at_ms" => :at }.freeze

def base64(data)
  data.nil? ? nil : [data].pack("m0")
end

def options_of(said)
  options = { headers: {} }
  said.each do |name, value|
    case name
    when "handler", "payload_base64" then nil
    when *SECONDS.keys then options[SECONDS[name]] = Rational(value, 1000)
    when "headers_base64" then options[:headers].merge!(value.transform_values { |v| v.unpack1("m0") })
    when "headers" then options[:headers].merge!(value)
    else options[name.to_sym] = value
    end
  end
  options
end

def payload_of(said)
  (said["payload_base64"] || "").unpack1("m0")
end

def task_of(said)
  Quiver::Task.new(said["handler"], payload_of(said), **options_of(said))
end

def encode(said)
  task = task_of(said["submit"])
  target, fields, body = task.request
  fields = fields.reject { |name, _| name == "Content-Type" }.to_h { |name, value| [name.downcase, value.dup.force_encoding("UTF-8")] }
  told = { "request" => { "target" => target, "fields" => fields, "body_base64" => base64(body) }, "line" => task.line }
  if said["as"]
    told["envelope_base64"] = base64(task.envelope(id: said["as"]["id"], submitted_ms: said["as"]["submitted_ms"], not_before_ms: task.at_ms))
    told["shard"] = task.key.nil? ? said["shard"] : Quiver::Task.shard_of(task.key, 64)
  end
  told
end

def shown(value)
  case value
  when Array then value.map { |one| shown(one) }
  when Quiver::Submitted then { "id" => value.id, "duplicate" => value.duplicate }
  when Quiver::Outcome
    told = { "outcome" => value.state, "id" => value.id, "reason" => value.reason.to_s, "error_text" => value.error.to_s }
    told["result_base64"] = base64(value.result) if value.done?
    told
  when Quiver::Result then { "receipt" => value.receipt, "id" => value.id, "key" => value.key, "handler" => value.handler, "data_base64" => base64(value.data) }
  when Quiver::Error
    told = { "error" => value.class.name.split("::").last.downcase, "text" => value.message }
    told["id"] = value.id if value.is_a?(Quiver::Refused) && value.id
    told["refused"] = value.message if value.is_a?(Quiver::Refused)
    told
  else value
  end
end

def answer(said)
  body = said.dig("answer", "body_base64")&.unpack1("m0")
  case said["do"]
  when "encode" then encode(said)
  when "answer" then Quiver::Answers.public_send(said["to"] == "call" ? :outcome : :submitted, said["answer"]["status"], body)
  when "open"
    @client = said["app"] ? Quiver.connect(said["url"], app: said["app"]) : Quiver.connect(said["url"], token: said["token"])
    {}
  when "submit" then @client.submit_task(task_of(said["task"]))
  when "submit_many" then @client.submit_many(said["tasks"].map { |one| task_of(one) })
  when "call" then @client.call(said["task"]["handler"], payload_of(said["task"]), wait: said["wait_ms"] / 1000.0, **options_of(said["task"]))
  when "wait" then @client.wait_for(said["id"], said["wait_ms"] / 1000.0)
  when "cancel" then @client.cancel(said["id"])
  when "task" then @client.task(said["id"])
  when "results" then @client.results(max: said["max"])
  else @client.commit(said["receipts"])
  end
end

$stdout.sync = true
$stdin.each_line do |line|
  told = begin
    answer(JSON.parse(line))
  rescue Quiver::Error => e
    e
  end
  puts JSON.generate(shown(told))
end
