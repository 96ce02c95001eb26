// The Node client behind the protocol of tests/clients/README.md: a line of JSON asks, a line of JSON answers.
import readline from 'node:readline';
import * as answers from '../../sdk/clients/node/answers.mjs';
import * as quiver from '../../sdk/clients/node/index.mjs';
import * as tasks from '../../sdk/clients/node/task.mjs';

const bytes = (base64) => Buffer.from(base64, 'base64');
const base64 = (data) => (data === null || data === undefined ? null : Buffer.from(data).toString('base64'));

function taskOf(said) {
  const task = {};
  for (const [name, value] of Object.entries(said)) {
    if (name === 'payload_base64') task.payload = bytes(value);
    else if (name === 'headers_base64') task.headers = { ...task.headers, ...Object.fromEntries(Object.entries(value).map(([n, v]) => [n, bytes(v)])) };
    else if (name === 'headers') task.headers = { ...task.headers, ...value };
    else if (name === 'idempotency_key') task.idempotencyKey = value;
    else task[name.replace(/_ms$/, '')] = value;
  }
  return task;
}

function encode(said) {
  const task = taskOf(said.submit);
  const { target, fields, body } = tasks.request(task);
  const shown = {};
  for (const [name, value] of Object.entries(fields)) {
    if (name !== 'Content-Type') shown[name.toLowerCase()] = Buffer.from(value, 'latin1').toString();
  }
  const told = { request: { target, fields: shown, body_base64: base64(body) }, line: tasks.line(task) };
  if (said.as) {
    const notBeforeMs = task.at !== undefined ? tasks.unixMilliseconds(task.at, 'at') : 0;
    told.envelope_base64 = base64(tasks.envelope(task, { id: said.as.id, submittedMs: said.as.submitted_ms, notBeforeMs }));
    told.shard = task.key !== undefined ? tasks.shardOf(task.key, 64) : said.shard;
  }
  return told;
}

function shown(value) {
  if (Array.isArray(value)) return value.map(shown);
  if (value instanceof quiver.QuiverError) {
    return { error: value.constructor.name.toLowerCase(), text: value.message, ...(value.id ? { id: value.id } : {}) };
  }
  if (value && value.state && ['done', 'dead', 'waiting'].includes(value.state) && (('result' in value) || ('error' in value) || value.state === 'waiting') && !('handler' in value)) {
    const told = { outcome: value.state, id: value.id ?? null, reason: value.reason ?? '', error_text: value.error ?? '' };
    if (value.state === 'done') told.result_base64 = base64(value.result);
    return told;
  }
  if (value && value.receipt) {
    const { receipt, id, key, handler, data } = value;
    return { receipt, id, key, handler, data_base64: base64(data) };
  }
  return value;
}

async function openClient({ url, token, app }) {
  return app ? quiver.connect(url.replace(/^unix:\/\//, 'redis+unix:'), { app }) : quiver.connect(url, { token });
}

let client;

async function answer(said) {
  const body = said.answer && bytes(said.answer.body_base64);
  switch (said.do) {
    case 'encode': return encode(said);
    case 'answer': return said.to === 'call' ? answers.outcome(said.answer.status, body) : answers.submitted(said.answer.status, body);
    case 'open': client = await openClient(said); return {};
    case 'submit': { const { handler, payload, ...options } = taskOf(said.task); return client.submit(handler, payload, options); }
    case 'submit_many': return client.submitMany(said.tasks.map(taskOf));
    case 'call': { const { handler, payload, ...options } = taskOf(said.task); return client.call(handler, payload, { ...options, wait: said.wait_ms }); }
    case 'wait': return client.wait(said.id, said.wait_ms);
    case 'cancel': return client.cancel(said.id);
    case 'task': return client.task(said.id);
    case 'results': return client.results({ max: said.max });
    default: return client.commit(said.receipts);
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  let told;
  try {
    told = shown(await answer(JSON.parse(line)));
  } catch (error) {
    if (!(error instanceof quiver.QuiverError)) throw error;
    told = { ...shown(error), ...(error instanceof quiver.Refused ? { refused: error.message } : {}) };
  }
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit(0);
