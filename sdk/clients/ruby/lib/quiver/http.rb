# frozen_string_literal: true

require "json"
require "net/http"
require "openssl"
require "socket"
require "uri"
require_relative "answers"
require_relative "task"

module Quiver
  # Net::HTTP over a host's own socket.
  class UnixHTTP < Net::HTTP
    def self.at(path)
      new("localhost", 80, nil).tap { |made| made.instance_variable_set(:@path, path) }
    end

    def connect
      @socket = Net::BufferedIO.new(UNIXSocket.new(@path), read_timeout: @read_timeout, write_timeout: @write_timeout)
      on_connect
    end
  end

  # The client over HTTP, with Ruby's own library alone.  Any thread may call it; each has a connection of its own.
  class Client
    LINES_AT_ONCE = 1000
    IDLE_S = 20 # a host closes a connection that was idle for 60 s: one that old is not used again
    LOST = [SystemCallError, IOError, SocketError, Net::ReadTimeout, Net::WriteTimeout, Net::HTTPBadResponse, Net::ProtocolError,
            OpenSSL::SSL::SSLError].freeze

    def initialize(url, token: nil, timeout: 30, repeats: 3)
      @unix = url.delete_prefix("http+unix:") if url.start_with?("http+unix:")
      @uri = URI(url) unless @unix
      unless @unix || (@uri.is_a?(URI::HTTP) && @uri.host)
        raise Refused, "#{url}: is not http://HOST:PORT, https://HOST:PORT or http+unix:PATH"
      end
      @name = @unix ? "localhost" : "#{@uri.host}:#{@uri.port}"
      @token, @timeout, @repeats = token, timeout, repeats
      @own = "quiver-#{object_id}"
    end

    def close
      drop
    end

    # Stores a task and returns its id; Refused, Retry or Unknown say why not.
    def submit(handler, payload = "", **options)
      submit_task(Task.new(handler, payload, **options))
    end

    def submit_task(task)
      target, fields, body = task.request
      repeated(task) { Answers.submitted(*ask("POST", target, fields, body)) }
    end

    # Stores tasks in the given order; returns for each its id, or the error that it would have raised.
    def submit_many(tasks)
      sending = Lines.new(tasks, LINES_AT_ONCE)
      goes_on = true
      while goes_on && !(body = sending.next).empty?
        begin
          goes_on = sending.answered(*ask("POST", "/v1/tasks", { "Content-Type" => "application/x-ndjson" }, body))
        rescue Error => e
          goes_on = sending.failed(e)
        end
      end
      sending.said
    end

    # Submits a task and waits for its outcome, at most 60 s.
    def call(handler, payload = "", wait: 30, **options)
      task = Task.new(handler, payload, **options)
      target, fields, body = task.request(wait)
      repeated(task) { Answers.outcome(*ask("POST", target, fields, body, @timeout + wait)) }
    end

    # How a task that was submitted before ended, without its result: that is among results, or comes with call.  It is asked for
    # more rarely the longer it takes.  Refused (404): it was done too long ago, or never was.
    def wait_for(id, wait = 30)
      until_s = Process.clock_gettime(Process::CLOCK_MONOTONIC) + wait
      pause = 0.02
      loop do
        ended = Answers.ended(id, task(id))
        left = until_s - Process.clock_gettime(Process::CLOCK_MONOTONIC)
        return ended if ended.state != "waiting" || left <= 0

        sleep([pause, left].min)
        pause = [pause * 1.5, 1].min
      end
    end

    def task(id)
      json("GET", "/v1/tasks/#{Task.escaped(id)}")
    end

    def cancel(id)
      json("POST", "/v1/tasks/#{Task.escaped(id)}/cancel")
    end

    def status
      json("GET", "/v1/status")
    end

    # Takes results; those that are not committed within the lease come back.
    def results(max: 100, lease: nil)
      query = "?max=#{max}" + (lease ? "&lease=#{Task.milliseconds(lease, "lease")}ms" : "")
      status, body = ask("POST", "/v1/results/take#{query}", {}, "")
      raise Answers.failure(status, body) unless status == 200

      Answers.results(body)
    end

    # These are done with: "committed" says how many, "refused" which were not ours any more.
    def commit(results)
      receipts = results.map { |one| one.is_a?(Result) ? one.receipt : one }
      json("POST", "/v1/results/commit", JSON.generate({ "receipts" => receipts }), { "Content-Type" => "application/json" })
    end

    # One request as it stands, for workers: status and body.
    def request(method, target, fields, body, timeout = @timeout)
      ask(method, target, fields, body, timeout)
    end

    private

    def json(method, target, body = "", fields = {})
      status, answer = ask(method, target, fields, body)
      raise Answers.failure(status, answer) unless status.between?(200, 299)

      Answers.document(answer)
    end

    # Calls again after Retry and Unknown, later each time: only what may be repeated.
    def repeated(task)
      at = 0
      begin
        yield
      rescue Retry, Unknown
        raise if task.idempotency_key.nil? || at >= @repeats

        sleep(0.1 * 2**at)
        at += 1
        retry
      end
    end

    def connection(timeout)
      kept, used_at = Thread.current[@own]
      if kept && Process.clock_gettime(Process::CLOCK_MONOTONIC) - used_at < IDLE_S
        kept.read_timeout = timeout
        return kept
      end
      drop
      made = @unix ? UnixHTTP.at(@unix) : Net::HTTP.new(@uri.host, @uri.port, nil)
      made.use_ssl = true if @uri && @uri.scheme == "https"
      made.open_timeout = @timeout
      made.read_timeout = timeout
      made.max_retries = 0 # an answer that does not come is unknown: nothing is sent twice behind our back
      made.keep_alive_timeout = IDLE_S
      made.start
      made
    rescue *LOST => e
      raise Retry, "cannot connect to #{@name}: #{e.message}"
    end

    def drop
      kept, = Thread.current[@own]
      Thread.current[@own] = nil
      kept&.finish
    rescue IOError
      nil # it was not open any more
    end

    def ask(method, target, fields, body, timeout = @timeout)
      own = { "Host" => @name, **fields }
      own["Authorization"] = "Bearer #{@token}" if @token
      http = connection(timeout)
      begin
        asked = Net::HTTPGenericRequest.new(method, method == "POST", true, target, own)
        asked.body = body if method == "POST"
        answer = http.request(asked)
        Thread.current[@own] = [http, Process.clock_gettime(Process::CLOCK_MONOTONIC)]
        [answer.code.to_i, (answer.body || "").b]
      rescue *LOST => e
        drop
        raise Unknown, "#{@name} did not answer: #{e.message}"
      end
    end
  end
end
