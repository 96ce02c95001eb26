#!/usr/bin/env ruby
# my-plugin: counts the words of its payload; replace that with your own work.
#
# A worker of plugin = "pipe.so": it stays, and gets one task at a time.  What the block returns is the task's result; an
# exception makes it run again later, Outcome.new(:reject, why) never, Outcome.new(:unavailable, why) once the others can go on,
# Outcome.new(:later, why) when this key can go on; the other keys need not wait.
require_relative "quiver_pipe"

QuiverPipe.serve do |task|
  words = task.payload.split
  raise QuiverPipe::Outcome.new(:reject, "the payload has no words") if words.empty?

  words.length.to_s
end
