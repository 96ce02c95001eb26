// Workers over HTTP: serve(handle, 'mail', { url }) calls handle(task), which may be async, for the tasks of a handler with
// plugin = "remote".  The names are those of quiver_pipe, so a handle() that was written for one works with the other: what it returns
// is the result, Outcome chooses another outcome, any other error is a retry.  The host's services (trylock …) are not there over HTTP.
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import util from 'node:util';
import * as answers from './answers.mjs';
import { QuiverError, Refused } from './errors.mjs';
import { Client } from './http.mjs';

const POLL_MS = 30_000;
const KINDS = ['reject', 'retry', 'later', 'limited', 'unavailable'];
const REPEATS = 5; // of an outcome whose answer was lost: the fence makes a repeat harmless

/** throw new Outcome('reject' | 'retry' | 'later' | 'limited' | 'unavailable', why, {after_ms: …}) */
export class Outcome extends Error {
  constructor(kind, why = '', fields = {}) {
    super(why);
    if (!KINDS.includes(kind)) throw new TypeError(`an Outcome is reject, retry, later, limited or unavailable, not ${util.inspect(kind)}`);
    Object.assign(this, { kind, fields });
  }
}

const base64 = (data) => Buffer.from(data).toString('base64');
const bytesOf = (told, name) => (told[`${name}_base64`] !== undefined ? Buffer.from(told[`${name}_base64`], 'base64') : Buffer.from(told[name] ?? ''));

function makeTask(told) {
  const [fence_epoch, fence_start] = told.fence.split('.').map(Number);
  const headers = { ...told.headers };
  for (const [name, value] of Object.entries(told.headers_base64 ?? {})) headers[name] = Buffer.from(value, 'base64');
  const stop = new AbortController();
  const said = { told: {}, news: {} }; // for the outcome; for the next heartbeat, too
  const tell = (kind, body = '', fields = {}) => {
    switch (kind) {
      case 'log': process.stderr.write(`${Buffer.from(body)}\n`); break;
      case 'result': said.told.result_base64 = base64(body); break;
      case 'checkpoint': said.news.checkpoint_base64 = base64(body); break;
      case 'progress': said.news.progress = [Number(fields.done ?? 0), Number(fields.total ?? 0)]; break;
      case 'submit': {
        const { handler, key, lane, delay_ms } = fields;
        (said.told.follow_ups ??= []).push({ handler, key, lane, delay: delay_ms === undefined ? undefined : `${delay_ms}ms`, payload_base64: base64(body) });
        break;
      }
      default: throw new TypeError(`a task can be told log, result, submit, checkpoint and progress, not ${util.inspect(kind)}`);
    }
  };
  const { id, key, handler, attempt, attempts_max, crashes, submitted_ms } = told;
  const task = { id, key, handler, attempt, attempts_max, crashes, submitted_ms, fence_epoch, fence_start, headers, fields: told, tell,
    payload: bytesOf(told, 'payload'), checkpoint: bytesOf(told, 'checkpoint'), stop: stop.signal };
  return { task, said, stop };
}

async function outcomeOf(handle, task, said) {
  const kept = () => (said.news.checkpoint_base64 === undefined ? {} : { checkpoint_base64: said.news.checkpoint_base64 });
  try {
    const result = await handle(task);
    if (result !== undefined && result !== null) task.tell('result', result);
    return { outcome: 'done', ...said.told };
  } catch (error) {
    if (error instanceof Outcome) {
      const after = error.fields.after_ms === undefined ? {} : { retry_after: `${error.fields.after_ms}ms` };
      return { outcome: error.kind, error: error.message, ...after, ...kept() };
    }
    process.stderr.write(`${util.inspect(error)}\n`);
    return { outcome: 'retry', error: error instanceof Error ? `${error.name}: ${error.message}` : `thrown: ${util.inspect(error)}`, ...kept() };
  }
}

class Worker {
  #client;
  #path;
  #name;

  constructor(handler, url, token, name) {
    this.#client = new Client(url, { token, timeout: 10_000 });
    this.#path = `/v1/work/${handler}`;
    this.#name = name;
  }

  async #post(path, body, timeout) {
    const { status, body: told } = await this.#client.request('POST', this.#path + path, { 'Content-Type': 'application/json' }, Buffer.from(JSON.stringify(body)), timeout);
    if (status === 204) return null;
    if (status < 200 || status >= 300) throw answers.failure(status, told);
    return answers.document(told);
  }

  /** Heartbeats.  Once the time is over the task may be another worker's, so this process must not go on with it. */
  #keep({ task, said, stop }) {
    let end = Date.now() + task.fields.remaining_ms;
    let timer;
    const next = () => { timer = setTimeout(beat, Math.max(0, Math.min(task.fields.ttl_ms / 3, end - Date.now()))); };
    const beat = async () => {
      try {
        const told = await this.#post(`/${task.id}/heartbeat`, { fence: task.fields.fence, ...said.news });
        if (told?.stop) stop.abort();
        else if (told) end = Date.now() + told.remaining_ms;
      } catch (error) {
        if (error instanceof Refused && error.status === 409) end = 0;
      }
      if (timer === null) return;
      if (Date.now() >= end) {
        process.stderr.write(`task ${task.id} is no longer this worker's, and its handler still runs: the process ends\n`);
        process.exit(70);
      }
      next();
    };
    next();
    return () => { clearTimeout(timer); timer = null; };
  }

  async #finish(task, outcome) {
    for (let at = 0; at < REPEATS; at++) {
      try {
        await this.#post(`/${task.id}/outcome`, { fence: task.fields.fence, ...outcome });
        return;
      } catch (error) {
        if (!(error instanceof QuiverError)) throw error;
        if (!(error instanceof Refused)) {
          await sleep(100 * 2 ** at);
          continue;
        }
        if (error.status === 409) return; // an earlier one was taken, or the time is over
        process.stderr.write(`task ${task.id}: ${error.message}\n`);
        if (outcome.outcome !== 'done') return;
        outcome = { outcome: 'reject', error: `its outcome was refused: ${error.message}` };
      }
    }
  }

  async run(handle, signal) {
    while (!signal?.aborted) {
      let told;
      try {
        told = await this.#post(`?worker=${this.#name}&wait=${POLL_MS}ms`, {}, POLL_MS + 10_000);
      } catch (error) {
        if (!(error instanceof QuiverError)) throw error;
        process.stderr.write(`${this.#path}: ${error.message}\n`);
        await sleep(1000);
        continue;
      }
      if (!told) continue;
      const made = makeTask(told);
      const over = this.#keep(made);
      const outcome = await outcomeOf(handle, made.task, made.said);
      over();
      await this.#finish(made.task, outcome);
    }
    this.#client.close();
  }
}

/**
 * Does tasks, one at a time for each URL, until `signal` is aborted, or for ever.  `url` is one or a list: of each host, or of some, since
 * any hands out the tasks of all.
 */
export async function serve(handle, handler, { url, token, signal } = {}) {
  const name = `${os.hostname().slice(0, 32)}-${process.pid}`;
  await Promise.all([url].flat().map((one, at) => new Worker(handler, one, token, `${name}-${at}`).run(handle, signal)));
}
