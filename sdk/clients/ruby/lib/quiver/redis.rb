# frozen_string_literal: true

require_relative "answers"
require_relative "task"

module Quiver
  # The client on the store's own Redis, for speed: an RPUSH a task, by the gem "redis".  What needs one of Quiver's scripts
  # or a host is refused by name: the client over HTTP has it.
  class RedisClient
    WAITS = /\A(OOM|MISCONF|NOREPLICAS|LOADING|READONLY|MASTERDOWN|TRYAGAIN|CLUSTERDOWN|BUSY|MOVED|ASK)/.freeze
    TASKS_AT_ONCE = 1000
    BYTES_AT_ONCE = 16 << 20
    NOT_SENT = "an earlier task was not stored; this one was not sent"

    # `redis` is a Redis of that gem, also with Sentinels or a Cluster.
    def initialize(redis, app, max_payload: 1 << 20)
      @redis, @app, @max_payload = redis, app, max_payload
    end

    def close
      @redis.close
    end

    # As the store has recorded them; they never change.
    def shards
      @shards ||= begin
        told = said(false) { @redis.hget("quiver:{#{@app}}:app", "shards") }
        raise Refused.new("there is no app #{@app} in this Redis; a host makes it", 404) if told.nil?
        raise Refused, "app #{@app}: shards is #{told}" unless told.match?(/\A[1-9][0-9]{0,3}\z/) && told.to_i <= 4096

        told.to_i
      end
    end

    def submit(handler, payload = "", **options)
      submit_task(Task.new(handler, payload, **options))
    end

    def submit_task(task, reply: nil)
      id, name, data = stored(task, reply)
      said { @redis.rpush(name, data) }
      Submitted.new(id, false)
    end

    # In the given order.  Those of one list are one command, which stores all of them or none; order is per key and lane, and those
    # of a key and lane are in one list.  Once a command fails, nothing more is sent: the rest are Retry.
    def submit_many(tasks)
      said = tasks.map do |task|
        stored(task, nil)
      rescue Refused => e
        e
      end
      is_over = false
      commands(said).each do |name, places|
        break if is_over

        error = push(name, places.map { |at| said[at].last })
        is_over = !error.nil?
        places.each { |at| said[at] = error || Submitted.new(said[at].first, false) }
      end
      said.map { |one| one.is_a?(Array) ? Retry.new(NOT_SENT) : one }
    end

    def call(handler, payload = "", wait: 30, **options)
      wait_for(submit_task(Task.new(handler, payload, **options), reply: wait + 60).id, wait)
    end

    # The outcome of a task that was submitted by call(); it is asked for more rarely the longer it takes.
    def wait_for(id, wait)
      until_s = now + wait
      key = "quiver:{#{@app}:#{id.rpartition("-").last}}:reply:#{id}"
      pause = 0.001
      loop do
        told = said(false) { @redis.get(key) }
        return outcome(id, told, until_s) unless told.nil?
        return Outcome.new(state: "waiting", id: id) if now >= until_s

        sleep([pause, [until_s - now, 0].max].min)
        pause = [pause * 1.5, 0.25].min
      end
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    def outcome(id, told, until_s)
      state, has_data, data, reason = Reply.new(told.b).read
      return wait_for(data, [until_s - now, 0].max) if state == 3
      return Outcome.new(state: "done", id: id, result: has_data == 1 ? data : nil) if state == 1

      Outcome.new(state: "dead", id: id, reason: reason, error: "")
    end

    # [list, places of its tasks], in the order in which they are sent.
    def commands(stored)
      made, part, count, size = [], {}, 0, 0
      stored.each_with_index do |one, at|
        next if one.is_a?(Error)

        if count == TASKS_AT_ONCE || size + one.last.bytesize > BYTES_AT_ONCE
          made.concat(part.to_a)
          part, count, size = {}, 0, 0
        end
        (part[one[1]] ||= []) << at
        count += 1
        size += one.last.bytesize
      end
      made.concat(part.to_a)
    end

    # nil, or why not.
    def push(name, texts)
      said { @redis.rpush(name, texts) }
      nil
    rescue Error => e
      e
    end

    # The id, the list and the bytes.
    def stored(task, reply)
      special = task.is_special
      raise Refused, "#{special}: needs a script of the store; the client over HTTP has it" if special

      task.check
      raise Refused.new("payload: has #{task.payload.bytesize} bytes, of at most #{@max_payload}", 413) if task.payload.bytesize > @max_payload

      not_before_ms = task.at_ms
      if (delay_ms = task.milliseconds(:delay))
        seconds, micros = said(false) { @redis.time }
        not_before_ms = [not_before_ms, seconds * 1000 + micros / 1000 + delay_ms].max
      end
      shard = task.key.nil? ? rand(shards) : Task.shard_of(task.key, shards)
      id = Task.new_id(shard)
      reply_ms = reply ? Task.milliseconds(reply, "wait") : 0
      [id, "quiver:{#{@app}:#{shard}}:#{task.lane}",
       task.envelope(id: id, submitted_ms: (Time.now.to_f * 1000).to_i, not_before_ms: not_before_ms, reply_ms: reply_ms)]
    end

    # Of an error of the gem: a refusal stored nothing, a lost connection may have.
    def said(is_write = true)
      yield
    rescue ::Redis::CannotConnectError => e
      raise Retry, "Redis: #{e.message}"
    rescue ::Redis::CommandError => e
      raise Retry, "Redis: #{e.message}" if e.message.match?(WAITS)

      raise Refused.new("Redis: #{e.message}", e.message.match?(/\A(NOAUTH|WRONGPASS|NOPERM)/) ? 403 : 400)
    rescue ::Redis::BaseError, SystemCallError, IOError => e
      raise is_write ? Unknown : Retry, "Redis: #{e.message}"
    end
  end

  # Reads the few kinds of MessagePack that a reply in the store is made of.
  class Reply
    INTEGERS = { 0xcc => ["C", 1], 0xcd => ["n", 2], 0xce => ["N", 4], 0xcf => ["Q>", 8], 0xd0 => ["c", 1], 0xd1 => ["s>", 2],
                 0xd2 => ["l>", 4], 0xd3 => ["q>", 8], 0xca => ["g", 4], 0xcb => ["G", 8] }.freeze
    STRINGS = { 0xd9 => ["C", 1], 0xda => ["n", 2], 0xdb => ["N", 4], 0xc4 => ["C", 1], 0xc5 => ["n", 2], 0xc6 => ["N", 4] }.freeze

    def initialize(data)
      @data, @at = data, 0
    end

    def read
      kind = take(1).ord
      return kind if kind < 0x80
      return kind - 256 if kind >= 0xe0
      return Array.new(kind == 0xdc ? number(["n", 2]) : kind & 15) { read } if kind & 0xf0 == 0x90 || kind == 0xdc
      return take(STRINGS[kind] ? number(STRINGS[kind]) : kind & 31) if kind & 0xe0 == 0xa0 || STRINGS[kind]
      return number(INTEGERS[kind]) if INTEGERS[kind]
      return { 0xc0 => nil, 0xc2 => false, 0xc3 => true }.fetch(kind)
    end

    private

    def take(size)
      raise RangeError, "longer than what there is" if @at + size > @data.bytesize

      @at += size
      @data.byteslice(@at - size, size)
    end

    def number(form)
      take(form.last).unpack1(form.first)
    end
  end
end
