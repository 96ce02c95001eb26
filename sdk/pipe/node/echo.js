#!/usr/bin/env node
// Returns its payload with a greeting: config = { command = ["/usr/bin/node", "/path/to/echo.js"]; };
'use strict';
const { serve, Outcome } = require('./quiver_pipe');

serve(async (task) => {
  if (!task.payload.length) throw new Outcome('reject', 'the payload is empty');
  return Buffer.concat([Buffer.from('hello, '), task.payload]);
});
