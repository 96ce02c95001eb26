# frozen_string_literal: true

# Client of Quiver: tasks that run in the order of their key, each once, none lost.
#
#     client = Quiver.connect("http://127.0.0.1:7070", token: token)
#     client.submit("mail", "hello", key: "user-17")
require_relative "quiver/http"
require_relative "quiver/redis"

module Quiver
  VERSION = "0.2.0"

  # http://, https:// and http+unix: give a Client; redis://, rediss:// and unix:// with app: a RedisClient.
  def self.connect(url, app: nil, max_payload: 1 << 20, **options)
    return Client.new(url, **options) unless url.start_with?("redis://", "rediss://", "unix://")
    raise Refused, "a store on Redis may have several apps: say app: NAME" unless app

    require "redis"
    RedisClient.new(::Redis.new(url: url, reconnect_attempts: 0, **options), app, max_payload: max_payload)
  end
end
