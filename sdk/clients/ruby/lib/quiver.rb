# frozen_string_literal: true

# Client of Quiver: tasks that run in the order of their key, each once, none lost.
#
#     client = Quiver.connect("http://127.0.0.1:7070", token: token)
#     client.submit("mail", "hello", key: "user-17")
require_relative "quiver/http"
require_relative "quiver/redis"
require_relative "quiver/worker"

module Quiver
  VERSION = "0.2.0"

  REDIS = %w[redis:// rediss:// unix:// redis+sentinel:// redis+cluster://].freeze

  # http://, https:// and http+unix: give a Client.  With app:, redis://, rediss://, unix://, redis+sentinel://H1,H2,H3/MASTER and
  # redis+cluster://H1,H2,H3 give a RedisClient; other options go to the gem "redis".
  def self.connect(url, app: nil, max_payload: 1 << 20, **options)
    return Client.new(url, **options) unless url.start_with?(*REDIS)
    raise Refused, "a store on Redis may have several apps: say app: NAME" unless app

    require "redis"
    # The gem repeats a command after a lost connection unless it is told not to: that would be a second task.
    RedisClient.new(::Redis.new(**redis_options(url), reconnect_attempts: 0, **options), app, max_payload: max_payload)
  end

  def self.redis_options(url)
    scheme, rest = url.split("://", 2)
    servers, name, database = rest.split("/")
    case scheme
    when "redis+cluster" then { cluster: servers.split(",").map { |one| "redis://#{one}" } }
    when "redis+sentinel"
      raise Refused, "#{url}: names no master: redis+sentinel://HOST:PORT,HOST:PORT/MASTER" unless name

      sentinels = servers.split(",").map { |one| one.rpartition(":").then { |host, _, port| { host: host, port: port.to_i } } }
      { url: "redis://#{name}/#{database || 0}", sentinels: sentinels, role: :master }
    else { url: url }
    end
  end
  private_class_method :redis_options
end
