// Handlers for Quiver's pipe plugin: serve(handle) calls handle(task), which may be async, for every task in turn.
'use strict';
const fs = require('fs');
const util = require('util');

// Frames have the pipes for themselves: what the handler prints goes to stderr, which is the log.
Object.defineProperty(process, 'stdout', { get: () => process.stderr });

const NUMBERS = ['attempt', 'attempts_max', 'crashes', 'submitted_ms', 'fence_epoch', 'fence_start', 'deadline_ms'];

// throw new Outcome('reject' | 'retry' | 'later' | 'limited' | 'unavailable', why, {after_ms: …})
class Outcome extends Error {
  constructor(kind, why = '', fields = {}) {
    super(why);
    if (!['reject', 'retry', 'later', 'limited', 'unavailable'].includes(kind)) {
      throw new TypeError(`an Outcome is reject, retry, later, limited or unavailable, not ${util.inspect(kind)}`);
    }
    Object.assign(this, { kind, fields });
  }
}

// The host did not do what was asked: error is the name of the reason in plugin.h, 'ETIMEDOUT' for example.
class ServiceError extends Error {
  constructor(service, error, text) {
    super(`${service}: ${error}: ${text}`);
    Object.assign(this, { name: 'ServiceError', error });
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

const chunks = process.stdin[Symbol.asyncIterator]();
let have = Buffer.alloc(0);

// The next frame; undefined at the end of the input.
async function receive() {
  while (have.length < 4 || have.length < 4 + have.readUInt32BE()) {
    const { done, value } = await chunks.next();
    if (done) return undefined;
    have = Buffer.concat([have, value]);
  }
  const size = 4 + have.readUInt32BE();
  const frame = parse(have.subarray(4, size));
  have = have.subarray(size);
  return frame;
}

let asked = Promise.resolve(); // an answer does not say who asked: one question at a time

// The value that the host answers, a BigInt; null if it refuses for the reason that is allowed.
function ask(tell, service, allowed, body, fields) {
  const answer = asked.then(async () => {
    tell(service, body, fields);
    const said = await receive();
    if (!said) throw new ServiceError(service, 'EPIPE', 'the host is gone');
    if (!('error' in said.fields)) return BigInt(said.fields.value);
    if (said.fields.error === allowed) return null;
    throw new ServiceError(service, said.fields.error, said.body.toString());
  });
  asked = answer.catch(() => {});
  return answer;
}

// Each returns a promise of the host's answer, which may be a ServiceError.
function services(tell) {
  return {
    // The fencing token of the lock, which is the task's until it ends or ttl_ms have passed; null: somebody else has it.
    trylock: (name, ttl_ms) => ask(tell, 'trylock', 'EBUSY', '', { name, ttl_ms }),
    // false: it was no longer held with that token.
    unlock: async (name, token) => (await ask(tell, 'unlock', 'ENOENT', '', { name, token })) !== null,
    next_id: () => ask(tell, 'next_id', null),
    // The number of the entry.
    room_append: (room, data) => ask(tell, 'room_append', null, data, { room }),
  };
}

// Only an Outcome chooses: libraries have errors with a field `kind` of their own, and anything at all can be thrown.
function fail(tell, error) {
  if (error instanceof Outcome) {
    tell(error.kind, error.message, error.fields);
    return;
  }
  for (const line of util.inspect(error).split('\n')) tell('log', line, { level: 'error' });
  tell('retry', error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${util.inspect(error)}`);
}

// task.payload, task.checkpoint: Buffer; task.id, .key, .handler, .lane: text; those of NUMBERS: numbers;
// task.headers: {name: value}; task.fields: all as it came; task.tell(kind, body, {name: value}); the services
async function run(handle, { fields, body }) {
  const split = body.length - Number(fields.checkpoint_size || 0);
  const tell = (kind, text = '', more = {}) => send(kind, text, { id: fields.id, ...more });
  const task = { ...fields, fields, tell, headers: {}, payload: body.subarray(0, split), checkpoint: body.subarray(split), ...services(tell) };
  for (const name of NUMBERS) if (name in fields) task[name] = Number(fields[name]);
  for (const [name, value] of Object.entries(fields)) {
    if (name.startsWith('header.')) task.headers[name.slice(7)] = value;
    if (name.startsWith('header64.')) task.headers[name.slice(9)] = Buffer.from(value, 'base64');
  }
  // For tools that trace, and for what the handler starts.
  for (const name of ['traceparent', 'tracestate']) {
    if (typeof task.headers[name] === 'string') process.env[name.toUpperCase()] = task.headers[name];
    else delete process.env[name.toUpperCase()];
  }
  try {
    const result = await handle(task);
    await asked; // a question that the handler did not wait for
    if (result !== undefined && result !== null) tell('result', result);
    tell('done');
  } catch (error) {
    await asked;
    fail(tell, error);
  }
}

async function serve(handle) {
  for (let frame = await receive(); frame; frame = await receive()) {
    if (frame.kind === 'hello') send('ready', '', { protocol: 1 });
    else await run(handle, frame);
  }
}

module.exports = { serve, Outcome, ServiceError };
