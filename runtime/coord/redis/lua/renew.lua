#!lua flags=allow-oom
-- renew: ARGV: session, nonce, ttl.  → OK, changed, session, next end; or EXPIRED, changed
--include tree

if is_alive(ARGV[1], ARGV[2]) then
	redis.call('ZADD', SESSIONS, now + ARGV[3], ARGV[1])
	reap()
	return { 'OK', changed, ARGV[1], next_end() }
end
reap()
return { 'EXPIRED', changed }
