# frozen_string_literal: true

require "json"
require_relative "errors"

module Quiver
  Submitted = Struct.new(:id, :duplicate)
  # state: "done", "dead", or "waiting": not within the time.
  Outcome = Struct.new(:state, :id, :result, :reason, :error, keyword_init: true) do
    def done?
      state == "done"
    end
  end
  Result = Struct.new(:receipt, :id, :key, :handler, :data, :at_ms, keyword_init: true)

  # What an answer over HTTP means.
  module Answers
    module_function

    def document(body)
      read = JSON.parse(body)
      read.is_a?(Hash) ? read : {}
    rescue JSON::ParserError, EncodingError
      {}
    end

    # Of an answer that is no success: 429 and 503 stored nothing; 504 may have, and behind a proxy's 502 is anything.
    def failure(status, body)
      told = document(body)
      text = (told["detail"] || told["error"] || body[0, 200].dup.force_encoding(Encoding::UTF_8).scrub).to_s
      text = "status #{status}" if text.empty?
      return Unknown.new(text) if status == 504
      return Retry.new(text) if [408, 429, 503].include?(status)
      return Refused.new(text, status, told["id"]) if status.between?(400, 499)

      Unknown.new("#{status}: #{text}")
    end

    def submitted(status, body)
      told = document(body)
      raise failure(status, body) unless status == 202 && told["id"].is_a?(String)

      Submitted.new(told["id"], told["duplicate"] ? true : false)
    end

    def outcome(status, body)
      case status
      when 200 then Outcome.new(state: "done", result: body.b)
      when 204 then Outcome.new(state: "done")
      when 422
        told = document(body)
        Outcome.new(state: "dead", id: told["id"], reason: told["reason"].to_s, error: (told["error"] || told["detail"]).to_s)
      else Outcome.new(state: "waiting", id: submitted(status, body).id)
      end
    end

    # Of the document of a task.
    def ended(id, told)
      return Outcome.new(state: "dead", id: id, reason: told["reason"].to_s, error: told["error"].to_s) if told["state"] == "dead"

      Outcome.new(state: told["state"] == "done" ? "done" : "waiting", id: id)
    end

    # What became of each line, in order.  Lines without an answer were not read.
    def lines(count, body)
      said = body.split("\n").map do |text|
        told = document(text)
        told["status"] == 202 ? Submitted.new(told["id"].to_s, told["duplicate"] ? true : false) : failure((told["status"] || 504).to_i, text)
      end
      said << Retry.new("the server stopped before this line; it was not stored") while said.size < count
      said.first(count)
    end

    def results(body)
      (document(body)["results"] || []).map do |one|
        data = one["data_base64"] ? one["data_base64"].unpack1("m0") : one["data"].to_s.b
        Result.new(receipt: one["receipt"], id: one["id"], key: one["key"], handler: one["handler"], data: data, at_ms: one["at_ms"])
      end
    end
  end

  # Tasks on their way as lines of JSON, a request after the other; those that no host would take are never sent.
  class Lines
    attr_reader :said

    def initialize(tasks, at_once)
      @at_once = at_once
      @left = []
      @said = tasks.each_with_index.map do |task, at|
        @left << [at, JSON.generate(task.line) + "\n"]
        Retry.new("an earlier task was not stored; this one was not sent")
      rescue Refused => e
        e
      end
    end

    # The next request's body; empty once all is sent.
    def next
      @left.first(@at_once).map(&:last).join
    end

    # Whether to go on: not behind a line that was not stored and might be later, which would overtake it.
    def answered(status, body)
      count = [@left.size, @at_once].min
      told(status == 200 ? Answers.lines(count, body) : [Answers.failure(status, body)] * count)
    end

    def failed(error)
      told([error] * [@left.size, @at_once].min)
    end

    private

    def told(all)
      all.each_with_index { |one, n| @said[@left[n].first] = one }
      @left.shift(all.size)
      all.none? { |one| one.is_a?(Retry) || one.is_a?(Unknown) }
    end
  end
end
