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
import { isRedis, opener } from './redis_open.mjs';

export { QuiverError, Refused, Retry, Unknown } from './errors.mjs';
export { Client, RedisClient };

/**
 * http://, https:// and http+unix: give a Client.  With { app }, redis://, rediss://, redis+unix:, redis+sentinel://H1,H2,H3/MASTER and
 * redis+cluster://H1,H2,H3 give a RedisClient; other options go to the package "redis", those in `sentinel` to its clients of Sentinels.
 */
export async function connect(url, options = {}) {
  if (!isRedis(url)) return new Client(url, options);
  const { app, maxPayload, timeout, ...others } = options;
  if (!app) throw new Refused('a store on Redis may have several apps: say { app: NAME }');
  const open = await opener(url, others);
  const isSeveral = /^redis\+(sentinel|cluster):/.test(url);
  return new RedisClient(await open(), app, { maxPayload, timeout, reopen: isSeveral ? open : undefined });
}
