# frozen_string_literal: true

require "json"
require "securerandom"
require "zlib"
require_relative "errors"

module Quiver
  # A task as this client sends it: checked by the rules of the envelope, written as bytes or as a request.
  # Times are seconds; `at` is a Time, or unix seconds.  Headers are texts or bytes (ASCII-8BIT).
  class Task
    NAMES = %i[key lane delay at unique merge debounce timeout attempts headers traceparent idempotency_key].freeze
    LANES = %w[high normal low].freeze
    DAY_MS = 86_400_000
    NUMBER_MAX = 2**53 - 1
    CONTROL = /[\x00-\x1f\x7f]/n.freeze

    attr_reader :handler, :key, :lane, :at, :idempotency_key

    def initialize(handler, payload = "", **options)
      unknown = options.keys - NAMES
      raise ArgumentError, "no option #{unknown.join(", ")}" unless unknown.empty?

      @handler = handler.to_s
      @payload = payload
      @options = options
      @key, @lane, @at, @idempotency_key = options[:key], (options[:lane] || "normal").to_s, options[:at], options[:idempotency_key]
    end

    def payload
      @payload.to_s.b
    end

    # Name and bytes, in order.  In small letters: HTTP knows no others.
    def headers
      found = {}
      (@options[:headers] || {}).each do |name, value|
        small = name.to_s.ascii_only? ? name.to_s.downcase : name.to_s
        raise Refused, "headers: two names differ in capitals alone" if found.key?(small)

        found[small] = value.to_s.b
      end
      found["traceparent"] = @options[:traceparent].b if @options[:traceparent]
      found
    end

    # Raises Refused if a host would refuse it, whatever it is sent by.
    def check
      refuse("handler: #{handler.inspect} has to be a letter, then letters, digits, _ or -; at most 64") unless handler.match?(/\A[A-Za-z][A-Za-z0-9_-]{0,63}\z/)
      check_text("key", key) unless key.nil?
      refuse("lane: #{lane.inspect} is none of high, normal, low") unless LANES.include?(lane)
      refuse("unique, merge and debounce: need a key") if key.nil? && (@options[:merge] || @options[:debounce] || @options[:unique])
      %i[delay unique debounce timeout].each { |name| milliseconds(name) }
      refuse("debounce: is longer than a day") if (milliseconds(:debounce) || 0) > DAY_MS
      attempts = @options[:attempts]
      refuse("attempts: #{attempts} is not from 1 to 1000") unless attempts.nil? || (attempts.is_a?(Integer) && attempts.between?(1, 1000))
      check_text("idempotency_key", idempotency_key) unless idempotency_key.nil?
      check_headers
    end

    def is_special
      %i[unique idempotency_key].find { |name| @options[name] }
    end

    def milliseconds(name)
      Task.milliseconds(@options[name], name) unless @options[name].nil?
    end

    def self.milliseconds(seconds, name)
      unless seconds.is_a?(Numeric) && seconds.positive? && seconds * 1000 <= NUMBER_MAX
        raise Refused, "#{name}: has to be a positive number of seconds, not #{seconds.inspect}"
      end
      [1, (seconds * 1000).round].max
    end

    def at_ms
      return 0 if at.nil?

      at.is_a?(Time) ? (at.to_r * 1000).round : Task.milliseconds(at, "at")
    end

    # --- as a request over HTTP

    # The target, the fields and the body of POST /v1/tasks/HANDLER.
    def request(wait = nil)
      said = parameters
      said["wait"] = "#{Task.milliseconds(wait, "wait")}ms" unless wait.nil?
      query = said.map { |name, value| "#{name}=#{Task.escaped(value)}" }.join("&")
      fields = { "Content-Type" => "application/octet-stream" }
      fields["Idempotency-Key"] = idempotency_key.b unless idempotency_key.nil?
      headers.each do |name, value|
        if name == "traceparent" && !value.match?(CONTROL)
          fields["traceparent"] = value
        elsif value.ascii_only? && !value.match?(CONTROL)
          fields["Quiver-Header-#{name}"] = value
        else
          fields["Quiver-Header64-#{name}"] = [value].pack("m0")
        end
      end
      ["/v1/tasks/#{handler}#{query.empty? ? "" : "?#{query}"}", fields, payload]
    end

    # The task as one line of POST /v1/tasks.
    def line
      said = { "handler" => handler, **parameters }
      said["merge"] = true if @options[:merge]
      said["attempts"] = @options[:attempts] if @options[:attempts]
      said["payload_base64"] = [payload].pack("m0")
      headers.each do |name, value|
        text = value.dup.force_encoding(Encoding::UTF_8)
        if text.valid_encoding? && !value.match?(CONTROL)
          (said["headers"] ||= {})[name] = text
        else
          (said["headers_base64"] ||= {})[name] = [value].pack("m0")
        end
      end
      said["idempotency_key"] = idempotency_key unless idempotency_key.nil?
      said
    end

    # --- as bytes in a store

    # zlib's CRC-32 of the key, modulo the number of shards.
    def self.shard_of(key, shards)
      Zlib.crc32(key.b) % shards
    end

    def self.new_id(shard)
      digits = "0123456789abcdefghjkmnpqrstvwxyz"
      "#{SecureRandom.bytes(20).each_byte.map { |byte| digits[byte & 31] }.join}-#{shard}"
    end

    # The bytes that a store holds: see envelope.h of the runtime.
    def envelope(id: nil, submitted_ms: 0, not_before_ms: 0, reply_ms: 0)
      check
      lines = ["qv1".b, "key:".b + (key || "").b, "handler:#{handler}".b]
      put = ->(name, value) { lines << "#{name}:#{value}".b if value && value != 0 }
      put.call("id", id)
      put.call("lane", lane == "normal" ? nil : lane)
      put.call("not_before", not_before_ms)
      put.call("attempts", @options[:attempts])
      put.call("timeout", milliseconds(:timeout))
      put.call("reply", reply_ms)
      put.call("submitted", submitted_ms)
      put.call("merge", @options[:merge] || @options[:debounce] ? 1 : nil)
      put.call("debounce", milliseconds(:debounce))
      headers.each do |name, value|
        lines << (value.match?(CONTROL) ? "header64.#{name}:#{[value].pack("m0")}".b : "header.#{name}:".b + value)
      end
      lines.map { |line| line + "\n".b }.join + "\n".b + payload
    end

    def self.escaped(text)
      text.b.gsub(/[^A-Za-z0-9_.~-]/n) { |byte| format("%%%02X", byte.ord) }
    end

    private

    def refuse(text)
      raise Refused, text
    end

    def check_text(name, text)
      refuse("#{name}: has #{text.bytesize} bytes, of 1 to 255") unless text.bytesize.between?(1, 255)
      refuse("#{name}: holds a control character") if text.b.match?(CONTROL)
    end

    def check_headers
      all = headers
      all.each do |name, value|
        refuse("header #{name.inspect}: has to be 1 to 64 letters, digits, _ or -") unless name.match?(/\A[A-Za-z0-9_-]{1,64}\z/)
        most = value.match?(CONTROL) ? 768 : 1024
        refuse("header #{name}: has #{value.bytesize} bytes, of at most #{most}") if value.bytesize > most
      end
      refuse("headers: #{all.size} of them, of at most 32") if all.size > 32
    end

    # The query, in a fixed order.
    def parameters
      check
      said = {}
      said["key"] = key unless key.nil?
      said["lane"] = lane unless lane == "normal"
      %i[delay unique debounce timeout].each { |name| said[name.to_s] = "#{milliseconds(name)}ms" if @options[name] }
      said["at"] = Time.at(at_ms / 1000, at_ms % 1000, :millisecond).utc.strftime("%Y-%m-%dT%H:%M:%S.%LZ") unless at.nil?
      said["merge"] = "1" if @options[:merge]
      said["attempts"] = @options[:attempts].to_s if @options[:attempts]
      said
    end
  end
end
