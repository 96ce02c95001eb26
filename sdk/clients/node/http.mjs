// The client over HTTP, with Node's own modules alone.
import http from 'node:http';
import https from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import * as answers from './answers.mjs';
import { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
import { milliseconds, request } from './task.mjs';

const LINES_AT_ONCE = 1000;
// A host closes a connection that was idle for 60 s; one that we close sooner is never found closed by a request.
const IDLE_MS = 20_000;

/** Calls again after Retry and Unknown, later each time: only for what may be repeated. */
async function repeated(repeats, call) {
  for (let at = 0; ; at++) {
    try {
      return await call();
    } catch (error) {
      if (at >= repeats || !(error instanceof Retry || error instanceof Unknown)) throw error;
      await sleep(100 * 2 ** at);
    }
  }
}

/** Submits tasks, waits for outcomes, takes results. */
export class Client {
  #options;
  #kind;
  #name;
  #token;
  #timeout;
  #repeats;

  constructor(url, { token, timeout = 30_000, repeats = 3, connections = 16 } = {}) {
    const isUnix = url.startsWith('http+unix:');
    if (!isUnix && !/^https?:\/\/[^/]/.test(url)) {
      throw new Refused(`${url}: is not http://HOST:PORT, https://HOST:PORT or http+unix:PATH`);
    }
    const parts = isUnix ? null : new URL(url);
    this.#kind = parts?.protocol === 'https:' ? https : http;
    this.#name = isUnix ? 'localhost' : parts.host;
    const agent = new this.#kind.Agent({ keepAlive: true, maxSockets: connections, timeout: IDLE_MS });
    this.#options = isUnix ? { agent, socketPath: url.slice('http+unix:'.length) } : { agent, hostname: parts.hostname.replace(/^\[|\]$/g, ''), port: parts.port || undefined };
    this.#token = token;
    this.#timeout = timeout;
    this.#repeats = repeats;
  }

  close() {
    this.#options.agent.destroy();
  }

  /** Stores a task and returns its id; Refused, Retry or Unknown say why not. */
  async submit(handler, payload, options = {}) {
    const task = { handler, payload, ...options };
    const { target, fields, body } = request(task);
    return repeated(task.idempotencyKey !== undefined ? this.#repeats : 0, async () => {
      const answer = await this.#ask('POST', target, fields, body);
      return answers.submitted(answer.status, answer.body);
    });
  }

  /** Stores tasks in the given order; returns for each its id, or the error that it would have thrown. */
  async submitMany(tasks) {
    const sending = new answers.Lines(tasks, LINES_AT_ONCE);
    let goesOn = true;
    for (let body = sending.next(); goesOn && body; body = sending.next()) {
      try {
        const answer = await this.#ask('POST', '/v1/tasks', { 'Content-Type': 'application/x-ndjson' }, Buffer.from(body));
        goesOn = sending.answered(answer.status, answer.body);
      } catch (error) {
        if (!(error instanceof QuiverError)) throw error;
        goesOn = sending.failed(error);
      }
    }
    return sending.said;
  }

  /** Submits a task and waits for its outcome, at most 60 000 ms. */
  async call(handler, payload, { wait = 30_000, ...options } = {}) {
    const task = { handler, payload, ...options };
    const { target, fields, body } = request(task, wait);
    return repeated(task.idempotencyKey !== undefined ? this.#repeats : 0, async () => {
      const answer = await this.#ask('POST', target, fields, body, this.#timeout + wait);
      return answers.outcome(answer.status, answer.body);
    });
  }

  /**
   * How a task that was submitted before ended, without its result: that is among results(), or comes with call().  It is asked for more
   * rarely the longer it takes.  Refused (404): it was done too long ago, or never was.
   */
  async wait(id, wait = 30_000) {
    const until = Date.now() + wait;
    for (let pause = 20; ; pause = Math.min(pause * 1.5, 1000)) {
      const ended = answers.ended(id, await this.task(id));
      const left = until - Date.now();
      if (ended.state !== 'waiting' || left <= 0) return ended;
      await sleep(Math.min(pause, left));
    }
  }

  task(id) {
    return this.#json('GET', `/v1/tasks/${encodeURIComponent(id)}`);
  }

  cancel(id) {
    return this.#json('POST', `/v1/tasks/${encodeURIComponent(id)}/cancel`);
  }

  status() {
    return this.#json('GET', '/v1/status');
  }

  /** Takes results; those that are not committed within the lease come back. */
  async results({ max = 100, lease } = {}) {
    const query = `?max=${max}${lease !== undefined ? `&lease=${milliseconds(lease, 'lease')}ms` : ''}`;
    const answer = await this.#ask('POST', `/v1/results/take${query}`, {}, Buffer.alloc(0));
    if (answer.status !== 200) throw answers.failure(answer.status, answer.body);
    return answers.results(answer.body);
  }

  /** These are done with: `committed` says how many, `refused` which were not ours any more. */
  commit(results) {
    const receipts = Array.from(results, (one) => (typeof one === 'string' ? one : one.receipt));
    return this.#json('POST', '/v1/results/commit', Buffer.from(JSON.stringify({ receipts })), { 'Content-Type': 'application/json' });
  }

  async #json(method, target, body = Buffer.alloc(0), fields = {}) {
    const answer = await this.#ask(method, target, fields, body);
    if (answer.status < 200 || answer.status >= 300) throw answers.failure(answer.status, answer.body);
    return answers.document(answer.body);
  }

  /** One request as it stands: for workers. */
  request(method, target, fields, body, timeout) {
    return this.#ask(method, target, fields, body, timeout);
  }

  /** A connection that was idle and is found closed is replaced, since nothing was sent on it that could be answered. */
  async #ask(method, target, fields, body, timeout = this.#timeout) {
    for (let isAgain = false; ; isAgain = true) {
      try {
        return await this.#askOnce(method, target, fields, body, timeout);
      } catch (error) {
        if (isAgain || !error.isStale) throw error.meaning ?? error;
      }
    }
  }

  #askOnce(method, target, fields, body, timeout) {
    const headers = { Host: this.#name, ...fields, 'Content-Length': body.length };
    if (this.#token) headers.Authorization = `Bearer ${this.#token}`;
    return new Promise((resolve, reject) => {
      let isConnected = false;
      const asking = this.#kind.request({ ...this.#options, method, path: target, headers, timeout });
      const fail = (error) => {
        const text = `${this.#name} did not answer: ${error.message}`;
        // Nobody was there; or a kept connection had been closed before anything was sent on it.
        const isStale = asking.reusedSocket && error.code === 'EPIPE';
        const meaning = isConnected ? new Unknown(text) : new Retry(`cannot connect to ${this.#name}: ${error.message}`);
        reject(Object.assign(new Error(text), { meaning, isStale }));
      };
      asking.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => { isConnected = true; });
        else isConnected = true;
      });
      asking.on('timeout', () => asking.destroy(new Error(`nothing within ${timeout} ms`)));
      asking.on('error', fail);
      asking.on('response', (answer) => {
        const parts = [];
        answer.on('data', (part) => parts.push(part));
        answer.on('error', fail);
        answer.on('aborted', () => fail(new Error('the answer was cut')));
        answer.on('end', () => resolve({ status: answer.statusCode, fields: answer.headers, body: Buffer.concat(parts) }));
      });
      asking.end(body);
    });
  }
}
