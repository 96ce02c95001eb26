// The client on the store's own Redis, for speed: an RPUSH a task, by the package "redis".  Nothing is sent twice: a command whose
// answer was lost is unknown.
import { setTimeout as sleep } from 'node:timers/promises';
import { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
import { unpack } from './msgpack.mjs';
import { bytesOf, check, envelope, milliseconds, newId, shardOf, unixMilliseconds } from './task.mjs';

const WAITS = /^(OOM|MISCONF|NOREPLICAS|LOADING|READONLY|MASTERDOWN|TRYAGAIN|CLUSTERDOWN|BUSY|MOVED|ASK)/;
// What a server says that has lost its place; everything else in capitals is an answer of the right one.
const LOST_ITS_PLACE = /^(READONLY|MASTERDOWN|CLUSTERDOWN|MOVED)/;
const TASKS_AT_ONCE = 1000;
const BYTES_AT_ONCE = 16 << 20;

/** Of an error of the package: a refusal stored nothing, a lost connection may have. */
function meaning(error, isWrite) {
  if (error instanceof QuiverError) return error;
  const text = `Redis: ${error.message}`;
  if (WAITS.test(error.message)) return new Retry(text);
  if (/^[A-Z]{3,} /.test(error.message)) return new Refused(text, /^(NOAUTH|WRONGPASS|NOPERM)/.test(error.message) ? 403 : 400);
  return isWrite && !/ECONNREFUSED|ENOENT|client is (closed|offline)|no master/.test(error.message) ? new Unknown(text) : new Retry(text);
}

/**
 * `client` is one of createClient() or createCluster(), and connected.  With `disableOfflineQueue: true` it says at once that
 * its server is away; else a call waits for that, at most `timeout`, and is then unknown.  `reopen` returns another such client: it
 * is called after a server was lost or lost its place, since the package itself would wait for that one to come back.
 */
export class RedisClient {
  #redis;
  #app;
  #maxPayload;
  #timeout;
  #shards = 0;
  #reopen;
  #isLost = false;
  #opening;

  constructor(client, app, { maxPayload = 1 << 20, timeout = 30_000, reopen } = {}) {
    this.#redis = client;
    this.#reopen = reopen;
    this.#app = app;
    this.#maxPayload = maxPayload;
    this.#timeout = timeout;
  }

  close() {
    return this.#redis.disconnect();
  }

  /** Another client instead of one whose server was lost.  Calls at the same time wait for the same one. */
  async #replace() {
    this.#opening ??= (async () => {
      this.#redis.disconnect().catch(() => {}); // it was lost already
      this.#redis = await this.#reopen();
      this.#isLost = false;
    })().finally(() => { this.#opening = undefined; });
    try {
      await this.#opening;
    } catch (error) {
      throw new Retry(`Redis: ${error.message}`); // nothing was sent
    }
  }

  async #send(key, words, isWrite = true) {
    if (this.#isLost) await this.#replace();
    const isCluster = Array.isArray(this.#redis.masters) || typeof this.#redis.getMasters === 'function'; // since 4.6, and before
    const bytes = { returnBuffers: true };
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.#timeout} ms`)), this.#timeout);
    });
    try {
      const sent = isCluster ? this.#redis.sendCommand(key, !isWrite, words, bytes) : this.#redis.sendCommand(words, bytes);
      return await Promise.race([sent, late]);
    } catch (error) {
      const isAnswer = /^[A-Z]{3,} /.test(error.message) && !LOST_ITS_PLACE.test(error.message);
      this.#isLost = this.#reopen !== undefined && !isAnswer;
      throw meaning(error, isWrite);
    } finally {
      clearTimeout(timer);
    }
  }

  /** As the store has recorded them; they never change. */
  async shards() {
    if (!this.#shards) {
      const key = `quiver:{${this.#app}}:app`;
      const told = await this.#send(key, ['HGET', key, 'shards'], false);
      if (told === null) throw new Refused(`there is no app ${this.#app} in this Redis; a host makes it`, 404);
      const shards = Number(told.toString());
      if (!(Number.isInteger(shards) && shards >= 1 && shards <= 4096)) throw new Refused(`app ${this.#app}: shards is ${told}`);
      this.#shards = shards;
    }
    return this.#shards;
  }

  async #stored(task, reply) {
    if (task.unique !== undefined) throw new Refused('unique: needs a script of the store; the client over HTTP has it');
    if (task.idempotencyKey !== undefined) throw new Refused('idempotency_key: needs a script of the store; the client over HTTP has it');
    check(task);
    const size = bytesOf(task.payload).length;
    if (size > this.#maxPayload) throw new Refused(`payload: has ${size} bytes, of at most ${this.#maxPayload}`, 413);
    let notBeforeMs = task.at !== undefined ? unixMilliseconds(task.at, 'at') : 0;
    if (task.delay !== undefined) {
      const [seconds, micros] = await this.#send(`quiver:{${this.#app}}:app`, ['TIME'], false);
      notBeforeMs = Math.max(notBeforeMs, Number(seconds) * 1000 + Math.floor(Number(micros) / 1000) + milliseconds(task.delay, 'delay'));
    }
    const shards = await this.shards();
    const shard = task.key !== undefined ? shardOf(task.key, shards) : Math.floor(Math.random() * shards);
    const id = newId(shard);
    const replyMs = reply !== undefined ? milliseconds(reply, 'wait') : 0;
    return { id, name: `quiver:{${this.#app}:${shard}}:${task.lane ?? 'normal'}`, data: envelope(task, { id, submittedMs: Date.now(), notBeforeMs, replyMs }) };
  }

  async submit(handler, payload, options = {}) {
    return this.#push({ handler, payload, ...options });
  }

  async #push(task, reply) {
    const { id, name, data } = await this.#stored(task, reply);
    await this.#send(name, ['RPUSH', name, data]);
    return { id, duplicate: false };
  }

  /**
   * In the given order.  Those of one list are one command, which stores all of them or none; order is per key and lane, and those of
   * a key and lane are in one list.  Once a command fails, nothing more is sent: the rest are Retry.
   */
  async submitMany(tasks) {
    const said = [];
    const groups = [];
    let part = new Map();
    let count = 0;
    let size = 0;
    for (const task of tasks) {
      let stored;
      try {
        stored = await this.#stored(task);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        said.push(error);
        continue;
      }
      const { id, name, data } = stored;
      if (count === TASKS_AT_ONCE || size + data.length > BYTES_AT_ONCE) {
        groups.push(...part.values());
        [part, count, size] = [new Map(), 0, 0];
      }
      if (!part.has(name)) part.set(name, { name, texts: [], places: [] });
      part.get(name).texts.push(data);
      part.get(name).places.push([said.length, id]);
      said.push(new Retry('an earlier task was not stored; this one was not sent'));
      count += 1;
      size += data.length;
    }
    for (const { name, texts, places } of [...groups, ...part.values()]) {
      try {
        await this.#send(name, ['RPUSH', name, ...texts]);
        for (const [at, id] of places) said[at] = { id, duplicate: false };
      } catch (error) {
        if (!(error instanceof QuiverError)) throw error;
        for (const [at] of places) said[at] = error;
        break;
      }
    }
    return said;
  }

  async call(handler, payload, { wait = 30_000, ...options } = {}) {
    const { id } = await this.#push({ handler, payload, ...options }, wait + 60_000);
    return this.wait(id, wait);
  }

  /** The outcome of a task that was submitted by call(); it is asked for more rarely the longer it takes. */
  async wait(id, wait) {
    const until = Date.now() + wait;
    const key = `quiver:{${this.#app}:${id.slice(id.lastIndexOf('-') + 1)}}:reply:${id}`;
    for (let pause = 1; ; pause = Math.min(pause * 1.5, 250)) {
      const told = await this.#send(key, ['GET', key], false);
      if (told !== null) {
        const [state, hasData, data, reason] = unpack(told);
        if (state === 3) return this.wait(data.toString(), Math.max(0, until - Date.now()));
        if (state === 1) return { state: 'done', id, result: hasData ? data : null };
        return { state: 'dead', id, reason: reason.toString(), error: '' };
      }
      if (Date.now() >= until) return { state: 'waiting', id };
      await sleep(Math.min(pause, Math.max(0, until - Date.now())));
    }
  }
}
