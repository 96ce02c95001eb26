#!/usr/bin/env node
// my-plugin: counts the words of its payload; replace that with your own work.
//
// A worker of plugin = "pipe.so": it stays, and gets one task at a time.  What the function returns is the task's result; an
// error makes it run again later, Outcome('reject', why) never, Outcome('unavailable', why) once the others can go on,
// Outcome('later', why) when this key can go on; the other keys need not wait.
'use strict';
const { serve, Outcome } = require('./quiver_pipe');

serve(async (task) => {
  const words = task.payload.toString().split(/\s+/).filter(Boolean);
  if (!words.length) throw new Outcome('reject', 'the payload has no words');
  return Buffer.from(String(words.length));
});
