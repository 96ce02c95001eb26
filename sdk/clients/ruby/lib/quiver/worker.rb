# frozen_string_literal: true

require "json"
require "socket"
require_relative "http"

module Quiver
  # Workers over HTTP: Quiver::Worker.serve("mail", url) { |task| … } runs the block for the tasks of a handler with plugin = "remote".
  # The names are those of QuiverPipe, so a block that was written for one works with the other: what it returns is the result, Outcome
  # chooses another outcome, any other error is a retry.  The host's services (trylock …) are not there over HTTP.
  class Worker
    POLL_S = 30
    REPEATS = 5 # of an outcome whose answer was lost: the fence makes a repeat harmless

    # raise Quiver::Worker::Outcome.new(:reject | :retry | :later | :limited | :unavailable, why, after_ms: …)
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

    # stop?: it was cancelled or its time is over; a long block looks at it.
    class Task
      attr_reader :id, :key, :handler, :attempt, :attempts_max, :crashes, :submitted_ms, :fence_epoch, :fence_start, :payload,
                  :checkpoint, :headers, :fields, :told, :news
      attr_writer :is_stopped

      def initialize(told)
        @fields = told
        @id, @key, @handler = told.values_at("id", "key", "handler")
        @attempt, @attempts_max, @crashes, @submitted_ms = told.values_at("attempt", "attempts_max", "crashes", "submitted_ms")
        @fence_epoch, @fence_start = told["fence"].split(".").map(&:to_i)
        @payload, @checkpoint = bytes("payload"), bytes("checkpoint")
        @headers = (told["headers"] || {}).merge((told["headers_base64"] || {}).transform_values { |value| value.unpack1("m") })
        @told, @news = {}, {} # for the outcome; for the next heartbeat, too
      end

      def stop?
        @is_stopped ? true : false
      end

      # task.tell.(:log | :result | :submit | :checkpoint | :progress, body, name: value)
      def tell
        method(:say)
      end

      private

      def bytes(name)
        @fields["#{name}_base64"]&.unpack1("m") || @fields[name].to_s.b
      end

      def say(kind, body = "", **fields)
        data = [body.to_s].pack("m0")
        case kind.to_sym
        when :log then warn(body)
        when :result then @told["result_base64"] = data
        when :checkpoint then @news["checkpoint_base64"] = data
        when :progress then @news["progress"] = [fields[:done].to_i, fields[:total].to_i]
        when :submit
          more = fields.slice(:handler, :key, :lane)
          more[:delay] = "#{fields[:delay_ms]}ms" if fields[:delay_ms]
          (@told["follow_ups"] ||= []) << { **more, payload_base64: data }
        else raise ArgumentError, "a task can be told log, result, submit, checkpoint and progress, not #{kind.inspect}"
        end
      end
    end

    # Does tasks, one at a time for each URL, for ever.  Give the URL of each host, or of some: any hands out the tasks of all.
    def self.serve(handler, *urls, token: nil, &handle)
      name = "#{Socket.gethostname[0, 32]}-#{Process.pid}"
      urls.each_with_index.map { |url, at| Thread.new { new(handler, url, token, "#{name}-#{at}").run(&handle) } }.each(&:join)
    end

    def initialize(handler, url, token, name)
      @client = Client.new(url, token: token, timeout: 10)
      @path, @name = "/v1/work/#{handler}", name
    end

    def run(&handle)
      loop do
        told = post("?worker=#{@name}&wait=#{POLL_S}s", {}, POLL_S + 10)
        work(Task.new(told), &handle) if told
      rescue Error => e
        warn("#{@path}: #{e.message}")
        sleep(1)
      end
    end

    private

    def post(path, body, timeout = 10)
      status, answer = @client.request("POST", @path + path, { "Content-Type" => "application/json" }, JSON.generate(body), timeout)
      return nil if status == 204
      raise Answers.failure(status, answer) unless status.between?(200, 299)

      Answers.document(answer)
    end

    def work(task, &handle)
      over = Queue.new
      beats = Thread.new { keep(task, over) }
      outcome = outcome_of(task, &handle)
      over << true
      beats.join
      finish(task, outcome)
    end

    def outcome_of(task)
      result = yield task
      task.tell.(:result, result) unless result.nil?
      { "outcome" => "done", **task.told }
    rescue Outcome => e
      after = e.fields[:after_ms] ? { "retry_after" => "#{e.fields[:after_ms]}ms" } : {}
      { "outcome" => e.kind.to_s, "error" => e.message, **after, **task.news.slice("checkpoint_base64") }
    rescue StandardError, ScriptError => e
      warn(e.full_message(highlight: false))
      { "outcome" => "retry", "error" => "#{e.class}: #{e.message}", **task.news.slice("checkpoint_base64") }
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Heartbeats.  Once the time is over the task may be another worker's, so this process must not go on with it.
    def keep(task, over)
      end_s = now + task.fields["remaining_ms"] / 1000.0
      until waited(over, [[task.fields["ttl_ms"] / 3000.0, end_s - now].min, 0].max)
        begin
          said = post("/#{task.id}/heartbeat", { "fence" => task.fields["fence"], **task.news })
          task.is_stopped = true if said["stop"]
          end_s = now + said["remaining_ms"] / 1000.0 unless task.stop?
        rescue Refused => e
          end_s = 0 if e.status == 409
        rescue Error
          nil # until its time is over
        end
        next unless now >= end_s && over.empty?

        warn("task #{task.id} is no longer this worker's, and its handler still runs: the process ends")
        exit!(70)
      end
    ensure
      @client.close # a thread has a connection of its own
    end

    # Whether the task is over within that time.  Queue#pop has no limit in Ruby 3.0.
    def waited(over, seconds)
      until_s = now + seconds
      sleep(0.01) while over.empty? && now < until_s
      !over.empty?
    end

    def finish(task, outcome)
      REPEATS.times do |at|
        post("/#{task.id}/outcome", { "fence" => task.fields["fence"], **outcome })
        return
      rescue Refused => e
        return if e.status == 409 # an earlier one was taken, or the time is over

        warn("task #{task.id}: #{e.message}")
        return unless outcome["outcome"] == "done"

        outcome = { "outcome" => "reject", "error" => "its outcome was refused: #{e.message}" }
      rescue Error
        sleep(0.1 * 2**at)
      end
    end
  end
end
