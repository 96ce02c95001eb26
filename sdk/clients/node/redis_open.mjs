// Connected clients of the package "redis" by URL, in the forms that runtime.cfg has for a store.
import { createRequire } from 'node:module';
import { Refused } from './errors.mjs';

const SENTINEL_PORT = 26379;
const REDIS_PORT = 6379;

export const isRedis = (url) => /^(rediss?:\/\/|redis\+(unix:|sentinel:\/\/|cluster:\/\/))/.test(url);

/** As a module of its own; else where NODE_PATH says, which only require() looks at. */
async function load() {
  try {
    return await import('redis');
  } catch {
    return createRequire(import.meta.url)('redis');
  }
}

function servers(url, port) {
  const text = url.slice(url.indexOf('://') + 3).split('/')[0];
  return text.split(',').map((one) => {
    const found = /^(\[[^\]]+\]|[^:@\s]+)(?::(\d+))?$/.exec(one);
    if (!found) throw new Refused(`${url}: is not ${url.split('://')[0]}://HOST:PORT,HOST:PORT…`);
    return { host: found[1].replace(/^\[|\]$/g, ''), port: Number(found[2] ?? port) };
  });
}

async function connected(client) {
  client.on('error', () => {}); // told by the calls that it fails
  await client.connect();
  return client;
}

/** Asks the Sentinels, one after the other, who the master is. */
async function masterOf(redis, sentinels, name, options) {
  let why = 'no Sentinel answers';
  for (const { host, port } of sentinels) {
    const asked = redis.createClient({ socket: { host, port, connectTimeout: 2000, reconnectStrategy: () => new Error('no answer') }, disableOfflineQueue: true, ...options });
    try {
      await connected(asked);
      const told = await asked.sendCommand(['SENTINEL', 'get-master-addr-by-name', name]);
      if (told) return { host: told[0], port: Number(told[1]) };
      why = `no Sentinel knows ${name}`;
    } catch {
      // the next one
    } finally {
      asked.disconnect().catch(() => {});
    }
  }
  throw new Error(`no master: ${why}`);
}

/** A function that returns a connected client, of the server that has the place now. */
export async function opener(url, { sentinel = {}, ...options } = {}) {
  const redis = await load();
  const usual = { disableOfflineQueue: true };
  if (url.startsWith('redis+cluster://')) {
    const rootNodes = servers(url, REDIS_PORT).map((socket) => ({ socket: { ...socket, connectTimeout: 2000 } }));
    return () => connected(redis.createCluster({ rootNodes, defaults: { ...usual, ...options } }));
  }
  if (url.startsWith('redis+sentinel://')) {
    const [name, database] = url.slice(url.indexOf('://') + 3).split('/').slice(1);
    if (!name) throw new Refused(`${url}: names no master: redis+sentinel://HOST:PORT,HOST:PORT/MASTER`);
    const sentinels = servers(url, SENTINEL_PORT);
    return async () => {
      const socket = { ...await masterOf(redis, sentinels, name, sentinel), connectTimeout: 2000, reconnectStrategy: () => new Error('it is lost') };
      return connected(redis.createClient({ ...usual, database: Number(database ?? 0), ...options, socket }));
    };
  }
  const where = url.startsWith('redis+unix:') ? { socket: { path: url.slice('redis+unix:'.length) } } : { url };
  return () => connected(redis.createClient({ ...usual, ...where, ...options }));
}
