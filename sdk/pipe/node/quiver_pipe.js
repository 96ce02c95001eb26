// Handlers for Quiver's pipe plugin: serve(handle) calls handle(task), which may be async, for every task in turn.
'use strict';
const fs = require('fs');

// Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
Object.defineProperty(process, 'stdout', { get: () => process.stderr });

// throw new Outcome('reject' | 'retry' | 'unavailable', why, {after_ms: …})
class Outcome extends Error {
  constructor(kind, why = '', fields = {}) {
    super(why);
    Object.assign(this, { kind, fields });
  }
}

function send(kind, body = '', fields = {}) {
  const head = Object.entries(fields).map(([name, value]) => `${name}=${value}\n`).join('');
  const frame = Buffer.concat([Buffer.alloc(4), Buffer.from(`${kind}\n${head}\n`), Buffer.from(body)]);
  frame.writeUInt32BE(frame.length - 4);
  for (let sent = 0; sent < frame.length;) sent += fs.writeSync(1, frame, sent);
}

function parse(frame) {
  const end = frame.indexOf('\n\n');
  const [kind, ...lines] = frame.toString('utf8', 0, end).split('\n');
  const fields = Object.fromEntries(lines.map((line) => [line.split('=', 1)[0], line.slice(line.indexOf('=') + 1)]));
  return { kind, fields, body: frame.subarray(end + 2) };
}

// task.payload, task.checkpoint: Buffer; task.id, .key, .attempt, …: text; task.tell(kind, body, {name: value})
async function run(handle, { fields, body }) {
  const split = body.length - Number(fields.checkpoint_size || 0);
  const tell = (kind, text = '', more = {}) => send(kind, text, { id: fields.id, ...more });
  try {
    const task = { ...fields, fields, tell, payload: body.subarray(0, split), checkpoint: body.subarray(split) };
    const result = await handle(task);
    if (result !== undefined && result !== null) tell('result', result);
    tell('done');
  } catch (error) {
    if (!(error instanceof Outcome)) console.error(error);
    tell(error.kind || 'retry', error.kind ? error.message : String(error), error.fields);
  }
}

async function serve(handle) {
  let have = Buffer.alloc(0);
  for await (const chunk of process.stdin) {
    have = Buffer.concat([have, chunk]);
    while (have.length >= 4 && have.length >= 4 + have.readUInt32BE()) {
      const size = 4 + have.readUInt32BE();
      const frame = parse(have.subarray(4, size));
      have = have.subarray(size);
      if (frame.kind === 'hello') send('ready', '', { protocol: 1 });
      else await run(handle, frame);
    }
  }
}

module.exports = { serve, Outcome };
