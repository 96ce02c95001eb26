// The client on the store's own Redis, for speed: an RPUSH a task, by the package "redis".
import { setTimeout as sleep } from 'node:timers/promises';
import { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
import { unpack } from './msgpack.mjs';
import { bytesOf, check, envelope, milliseconds, newId, shardOf, unixMilliseconds } from './task.mjs';

const WAITS = /^(OOM|MISCONF|NOREPLICAS|LOADING|READONLY|MASTERDOWN|TRYAGAIN|CLUSTERDOWN|BUSY)/;

/** Of an error of the package: a refusal stored nothing, a lost connection may have. */
function meaning(error, isWrite) {
  if (error instanceof QuiverError) return error;
  const text = `Redis: ${error.message}`;
  if (WAITS.test(error.message)) return new Retry(text);
  if (/^[A-Z]{3,} /.test(error.message)) return new Refused(text, /^(NOAUTH|WRONGPASS|NOPERM)/.test(error.message) ? 403 : 400);
  return isWrite && !/ECONNREFUSED|ENOENT|client is (closed|offline)/.test(error.message) ? new Unknown(text) : new Retry(text);
}

/**
 * `client` is one of createClient() or createCluster(), and connected.  With `disableOfflineQueue: true` it says at once that
 * its server is away; else a call waits for that, at most `timeout`, and is then unknown.
 */
export class RedisClient {
  #redis;
  #app;
  #maxPayload;
  #timeout;
  #shards = 0;

  constructor(client, app, { maxPayload = 1 << 20, timeout = 30_000 } = {}) {
    this.#redis = client;
    this.#app = app;
    this.#maxPayload = maxPayload;
    this.#timeout = timeout;
  }

  close() {
    return this.#redis.disconnect();
  }

  async #send(key, words, isWrite = true) {
    const isCluster = Array.isArray(this.#redis.masters);
    const bytes = { returnBuffers: true };
    let timer;
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error(`no answer within ${this.#timeout} ms`)), this.#timeout);
    });
    try {
      const sent = isCluster ? this.#redis.sendCommand(key, !isWrite, words, bytes) : this.#redis.sendCommand(words, bytes);
      return await Promise.race([sent, late]);
    } catch (error) {
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

  /** In the given order: commands of one connection are answered in the order in which they were sent. */
  async submitMany(tasks) {
    await this.shards();
    return Promise.all(Array.from(tasks, async (task) => {
      try {
        return await this.#push(task);
      } catch (error) {
        if (error instanceof QuiverError) return error;
        throw error;
      }
    }));
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
