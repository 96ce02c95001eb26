/**
 * Client of Quiver: tasks that run in the order of their key, each once, none lost.
 *
 *     import { connect } from 'quiver-client';
 *     const client = await connect('http://127.0.0.1:7070', { token });
 *     await client.submit('mail', 'hello', { key: 'user-17' });
 */
import { Refused } from './errors.mjs';
import { Client } from './http.mjs';
import { RedisClient } from './redis.mjs';

export { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
export { Client, RedisClient };

/** http://, https:// and http+unix: give a Client; redis://, rediss:// and redis+unix: with { app } a RedisClient. */
export async function connect(url, options = {}) {
  if (!/^(rediss?:\/\/|redis\+unix:)/.test(url)) return new Client(url, options);
  const { app, maxPayload, timeout, ...others } = options;
  if (!app) throw new Refused('a store on Redis may have several apps: say { app: NAME }');
  const { createClient } = await import('redis');
  const where = url.startsWith('redis+unix:') ? { socket: { path: url.slice('redis+unix:'.length) } } : { url };
  const client = createClient({ disableOfflineQueue: true, ...where, ...others });
  client.on('error', () => {}); // told by the calls that it fails
  await client.connect();
  return new RedisClient(client, app, { maxPayload, timeout });
}
