// A task as this client sends it: checked by the rules of the envelope, written as bytes or as a request.
import { randomBytes } from 'node:crypto';
import { Refused } from './errors.mjs';

const LANES = ['high', 'normal', 'low'];
const DAY_MS = 86_400_000;
// eslint-disable-next-line no-control-regex
const CONTROL = /[\x00-\x1f\x7f]/;

export const bytesOf = (value) => (typeof value === 'string' ? Buffer.from(value) : Buffer.from(value ?? []));

const hasControl = (bytes) => bytes.some((byte) => byte < 32 || byte === 127);

/** Milliseconds, as everywhere in JavaScript. */
export function milliseconds(time, name) {
  if (typeof time !== 'number' || !(time > 0) || time > Number.MAX_SAFE_INTEGER) {
    throw new Refused(`${name}: has to be a positive number of milliseconds, not ${time}`);
  }
  return Math.max(1, Math.round(time));
}

/** A Date, or unix milliseconds. */
export const unixMilliseconds = (at, name) => milliseconds(at instanceof Date ? at.getTime() : at, name);

function checkText(name, text) {
  const size = Buffer.byteLength(text);
  if (size < 1 || size > 255) throw new Refused(`${name}: has ${size} bytes, of 1 to 255`);
  if (CONTROL.test(text)) throw new Refused(`${name}: holds a control character`);
}

/** Name and bytes of each, in order.  In small letters: HTTP knows no others. */
export function headersOf(task) {
  const found = new Map();
  for (const [name, value] of Object.entries(task.headers ?? {})) {
    // eslint-disable-next-line no-control-regex
    const small = /^[\x00-\x7f]*$/.test(name) ? name.toLowerCase() : name;
    if (found.has(small)) throw new Refused('headers: two names differ in capitals alone');
    found.set(small, bytesOf(value));
  }
  if (task.traceparent !== undefined) found.set('traceparent', bytesOf(task.traceparent));
  return found;
}

function checkHeaders(task) {
  const headers = headersOf(task);
  for (const [name, value] of headers) {
    if (!/^[A-Za-z0-9_-]{1,64}$/.test(name) || name.endsWith('\n')) {
      throw new Refused(`header ${JSON.stringify(name)}: has to be 1 to 64 letters, digits, _ or -`);
    }
    const most = hasControl(value) ? 768 : 1024;
    if (value.length > most) throw new Refused(`header ${name}: has ${value.length} bytes, of at most ${most}`);
  }
  if (headers.size > 32) throw new Refused(`headers: ${headers.size} of them, of at most 32`);
}

/** Throws Refused if a host would refuse it, whatever it is sent by. */
export function check(task) {
  const { handler, key, lane = 'normal', attempts } = task;
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(handler ?? '')) {
    throw new Refused(`handler: ${JSON.stringify(handler)} has to be a letter, then letters, digits, _ or -; at most 64`);
  }
  if (key !== undefined) checkText('key', key);
  if (!LANES.includes(lane)) throw new Refused(`lane: ${JSON.stringify(lane)} is none of high, normal, low`);
  if ((task.merge || task.debounce !== undefined || task.unique !== undefined) && key === undefined) {
    throw new Refused('unique, merge and debounce: need a key');
  }
  for (const name of ['delay', 'unique', 'debounce', 'timeout']) {
    if (task[name] !== undefined) milliseconds(task[name], name);
  }
  if (task.debounce > DAY_MS) throw new Refused('debounce: is longer than a day');
  if (attempts !== undefined && !(Number.isInteger(attempts) && attempts >= 1 && attempts <= 1000)) {
    throw new Refused(`attempts: ${attempts} is not from 1 to 1000`);
  }
  if (task.idempotencyKey !== undefined) checkText('idempotency_key', task.idempotencyKey);
  checkHeaders(task);
}

// --- as a request over HTTP

/** The query, in a fixed order. */
function parameters(task) {
  check(task);
  const said = {};
  if (task.key !== undefined) said.key = task.key;
  if ((task.lane ?? 'normal') !== 'normal') said.lane = task.lane;
  for (const name of ['delay', 'unique', 'debounce', 'timeout']) {
    if (task[name] !== undefined) said[name] = `${milliseconds(task[name], name)}ms`;
  }
  if (task.at !== undefined) said.at = new Date(unixMilliseconds(task.at, 'at')).toISOString();
  if (task.merge) said.merge = '1';
  if (task.attempts !== undefined) said.attempts = String(task.attempts);
  return said;
}

const escaped = (text) => encodeURIComponent(text).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);

/** The target, the fields and the body of POST /v1/tasks/HANDLER. */
export function request(task, wait = undefined) {
  const said = parameters(task);
  if (wait !== undefined) said.wait = `${milliseconds(wait, 'wait')}ms`;
  const query = Object.entries(said).map(([name, value]) => `${name}=${escaped(value)}`).join('&');
  const fields = { 'Content-Type': 'application/octet-stream' };
  if (task.idempotencyKey !== undefined) fields['Idempotency-Key'] = Buffer.from(task.idempotencyKey).toString('latin1');
  for (const [name, value] of headersOf(task)) {
    const isPlain = value.every((byte) => byte >= 32 && byte < 127);
    if (name === 'traceparent' && !hasControl(value)) fields.traceparent = value.toString('latin1');
    else if (isPlain) fields[`Quiver-Header-${name}`] = value.toString('latin1');
    else fields[`Quiver-Header64-${name}`] = value.toString('base64');
  }
  return { target: `/v1/tasks/${task.handler}${query ? `?${query}` : ''}`, fields, body: bytesOf(task.payload) };
}

/** The task as one line of POST /v1/tasks. */
export function line(task) {
  const said = { handler: task.handler, ...parameters(task) };
  if (task.merge) said.merge = true;
  if (task.attempts !== undefined) said.attempts = task.attempts;
  said.payload_base64 = bytesOf(task.payload).toString('base64');
  for (const [name, value] of headersOf(task)) {
    const text = value.toString();
    if (!hasControl(value) && Buffer.from(text).equals(value)) (said.headers ??= {})[name] = text;
    else (said.headers_base64 ??= {})[name] = value.toString('base64');
  }
  if (task.idempotencyKey !== undefined) said.idempotency_key = task.idempotencyKey;
  return said;
}

// --- as bytes in a store

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  for (let bit = 0; bit < 8; bit++) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});

/** zlib's CRC-32 of the key, modulo the number of shards. */
export function shardOf(key, shards) {
  let sum = 0xffffffff;
  for (const byte of Buffer.from(key)) sum = TABLE[(sum ^ byte) & 255] ^ (sum >>> 8);
  return ((sum ^ 0xffffffff) >>> 0) % shards;
}

export function newId(shard) {
  const digits = '0123456789abcdefghjkmnpqrstvwxyz';
  return `${Array.from(randomBytes(20), (byte) => digits[byte & 31]).join('')}-${shard}`;
}

/** The bytes that a store holds: see envelope.h of the runtime. */
export function envelope(task, { id, submittedMs = 0, notBeforeMs = 0, replyMs = 0 } = {}) {
  check(task);
  const lines = [Buffer.from('qv1'), Buffer.from(`key:${task.key ?? ''}`), Buffer.from(`handler:${task.handler}`)];
  const put = (name, value) => value && lines.push(Buffer.from(`${name}:${value}`));
  put('id', id);
  put('lane', (task.lane ?? 'normal') !== 'normal' && task.lane);
  put('not_before', notBeforeMs);
  put('attempts', task.attempts);
  put('timeout', task.timeout !== undefined && milliseconds(task.timeout, 'timeout'));
  put('reply', replyMs);
  put('submitted', submittedMs);
  put('merge', (task.merge || task.debounce !== undefined) && 1);
  put('debounce', task.debounce !== undefined && milliseconds(task.debounce, 'debounce'));
  for (const [name, value] of headersOf(task)) {
    const text = hasControl(value) ? Buffer.from(value.toString('base64')) : value;
    lines.push(Buffer.concat([Buffer.from(`${hasControl(value) ? 'header64' : 'header'}.${name}:`), text]));
  }
  const newline = Buffer.from('\n');
  return Buffer.concat([...lines.flatMap((one) => [one, newline]), newline, bytesOf(task.payload)]);
}
