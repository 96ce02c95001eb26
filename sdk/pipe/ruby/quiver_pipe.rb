# Handlers for Quiver's pipe plugin: QuiverPipe.serve { |task| … } runs the block for every task, one after the other.
require "ostruct"

module QuiverPipe
  # Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
  IN = $stdin.binmode
  OUT = $stdout.dup.binmode
  $stdout.reopen($stderr)

  # raise QuiverPipe::Outcome.new(:reject | :retry | :unavailable, why, after_ms: …)
  class Outcome < StandardError
    attr_reader :kind, :fields

    def initialize(kind, why = "", **fields)
      super(why)
      @kind, @fields = kind, fields
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

  # task.payload, task.checkpoint: bytes; task.id, .key, .attempt, …: text; task.tell.(kind, body, name: value)
  def self.run(fields, body)
    split = body.bytesize - fields["checkpoint_size"].to_i
    tell = ->(kind, text = "", **more) { send_frame(kind, text, id: fields["id"], **more) }
    result = yield OpenStruct.new(**fields.transform_keys(&:to_sym), fields: fields, tell: tell, payload: body.byteslice(0, split),
                                  checkpoint: body.byteslice(split..))
    tell.(:result, result) unless result.nil?
    tell.(:done)
  rescue Outcome => outcome
    tell.(outcome.kind, outcome.message, **outcome.fields)
  rescue StandardError => error
    warn error.full_message
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
