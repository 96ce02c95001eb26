#!/usr/bin/env ruby
# Returns its payload with a greeting: config = { command = ["/usr/bin/ruby", "/path/to/echo.rb"]; };
require_relative "quiver_pipe"

QuiverPipe.serve do |task|
  raise QuiverPipe::Outcome.new(:reject, "the payload is empty") if task.payload.empty?

  "hello, ".b + task.payload
end
