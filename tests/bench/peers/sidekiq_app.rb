# The same work on Sidekiq:  sidekiq -r ./sidekiq_app.rb  works;  ruby sidekiq_app.rb TASKS  produces.
# REDIS: the server.  DONE: a file that grows by a byte with each task.
require "sidekiq"

Sidekiq.configure_server { |config| config.redis = { url: ENV.fetch("REDIS"), size: 30 } }
Sidekiq.configure_client { |config| config.redis = { url: ENV.fetch("REDIS"), size: 2 } }
Sidekiq.logger.level = Logger::WARN
DONE = File.open(ENV.fetch("DONE"), "a").tap { |file| file.sync = true }

class Noop
  include Sidekiq::Worker
  sidekiq_options retry: false

  def perform(_payload)
    DONE.syswrite("x")
  end
end

if $PROGRAM_NAME == __FILE__
  payload = ["0" * 100]
  (Integer(ARGV[0]) / 1000).times { Sidekiq::Client.push_bulk("class" => Noop, "args" => Array.new(1000) { payload }) }
end
