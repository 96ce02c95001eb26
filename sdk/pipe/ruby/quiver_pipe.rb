# Handlers for Quiver's pipe plugin: QuiverPipe.serve { |task| … } runs the block for every task, one after the other.
require "ostruct"

module QuiverPipe
  # Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
  IN = $stdin.binmode
  OUT = $stdout.dup.binmode
  $stdout.reopen($stderr)
  $stdout.sync = true

  NUMBERS = %w[attempt attempts_max crashes submitted_ms fence_epoch fence_start deadline_ms].freeze

  # raise QuiverPipe::Outcome.new(:reject | :retry | :later | :limited | :unavailable, why, after_ms: …)
  class Outcome < StandardError
    attr_reader :kind, :fields

    def initialize(kind, why = "", **fields)
      super(why)
      unless %w[reject retry later limited unavailable].include?(kind.to_s)
        raise ArgumentError, "an Outcome is reject, retry, later, limited or unavailable, not #{kind.inspect}"
      end

      @kind, @fields = kind, fields
    end
  end

  # The host did not do what was asked: error is the name of the reason in plugin.h, "ETIMEDOUT" for example.
  class ServiceError < StandardError
    attr_reader :error

    def initialize(service, error, text)
      super("#{service}: #{error}: #{text}")
      @error = error
    end
  end

  def self.send_frame(kind, body = "", **fields)
    frame = "#{kind}\n#{fields.map { |name, value| "#{name}=#{value}\n" }.join}\n".b + body.to_s.b
    OUT.write([frame.bytesize].pack("N") + frame)
    OUT.flush
  end

  def self.receive
    frame = IN.read((IN.read(4) || exit).unpack1("N"))
    head, body = frame.split("\n\n".b, 2)
    kind, *fields = head.force_encoding("UTF-8").split("\n")
    [kind, fields.to_h { |line| line.split("=", 2) }, body]
  end

  ASKING = Mutex.new # an answer does not say which thread asked

  # The value that the host answers; nil if it refuses for the reason that is allowed.
  def self.ask(tell, service, allowed, body = "", **fields)
    _, said, text = ASKING.synchronize do
      tell.(service, body, **fields)
      receive
    end
    return said["value"].to_i unless said.key?("error")

    raise ServiceError.new(service, said["error"], text) unless said["error"] == allowed
  end

  # task.trylock.(name, ttl_ms): the fencing token of the lock, which is the task's until it ends or ttl_ms have passed;
  # nil: somebody else has it.  task.unlock.(name, token): false if it was no longer held with that token.
  # task.next_id.(): a unique number.  task.room_append.(room, data): the entry's number.
  # They wait for the host's answer, and raise ServiceError.
  def self.services(tell)
    { trylock: ->(name, ttl_ms) { ask(tell, :trylock, "EBUSY", name: name, ttl_ms: ttl_ms) },
      unlock: ->(name, token) { !ask(tell, :unlock, "ENOENT", name: name, token: token).nil? },
      next_id: -> { ask(tell, :next_id, nil) },
      room_append: ->(room, data) { ask(tell, :room_append, nil, data, room: room) } }
  end

  # task.payload, task.checkpoint: bytes; task.id, .key, .handler, .lane: text; those of NUMBERS: integers;
  # task.headers: a hash; task.fields: all as it came; task.tell.(kind, body, name: value)
  def self.make_task(fields, body, tell)
    split = body.bytesize - fields["checkpoint_size"].to_i
    headers = fields.filter_map { |name, value| [name.delete_prefix("header."), value] if name.start_with?("header.") }.to_h
    fields.each { |name, value| headers[name.delete_prefix("header64.")] = value.unpack1("m") if name.start_with?("header64.") }
    # For tools that trace, and for what the handler starts.
    %w[traceparent tracestate].each { |name| ENV[name.upcase] = fields["header.#{name}"] }
    values = fields.to_h { |name, value| [name.to_sym, NUMBERS.include?(name) ? value.to_i : value] }
    OpenStruct.new(**values, fields: fields, headers: headers, tell: tell, payload: body.byteslice(0, split),
                   checkpoint: body.byteslice(split..), **services(tell))
  end

  def self.run(fields, body)
    tell = ->(kind, text = "", **more) { send_frame(kind, text, id: fields["id"], **more) }
    result = yield make_task(fields, body, tell)
    tell.(:result, result) unless result.nil?
    tell.(:done)
  rescue Outcome => outcome
    tell.(outcome.kind, outcome.message, **outcome.fields)
  rescue StandardError, ScriptError => error
    error.full_message(highlight: false).each_line(chomp: true) { |line| tell.(:log, line, level: "error") }
    tell.(:retry, "#{error.class}: #{error.message}")
  end

  def self.serve(&handle)
    receive
    send_frame(:ready, protocol: 1)
    loop do
      _, fields, body = receive
      run(fields, body, &handle)
    end
  end
end
