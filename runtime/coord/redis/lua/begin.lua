-- begin: a new session.  ARGV: nonce, ttl.  → OK, changed, number, next end
reap()
local session = next_id()
redis.call('HSET', session_key(session), 'nonce', ARGV[1], 'ttl', ARGV[2])
redis.call('ZADD', SESSIONS, now + ARGV[2], session)
return { 'OK', changed, session, next_end() }
