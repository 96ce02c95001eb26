#!lua flags=allow-oom
-- begin: a new session.  ARGV: nonce, ttl.  → OK, changed, number, next end; or BROKEN, changed, why
--include tree

reap()
if not is_kind(SESSIONS, 'zset') then
	return { 'BROKEN', changed, SESSIONS .. ' is not a sorted set; remove it' }
end
local session = next_id()
redis.call('HSET', session_key(session), 'nonce', ARGV[1], 'ttl', ARGV[2])
redis.call('ZADD', SESSIONS, now + ARGV[2], session)
return { 'OK', changed, session, next_end() }
