#!lua flags=allow-oom
-- finish: the session ends now, its nodes with it.  ARGV: session, nonce.  → OK, changed; also if it is over already
--include tree

if is_alive(ARGV[1], ARGV[2]) then
	redis.call('ZADD', SESSIONS, 0, ARGV[1])
end
reap()
return { 'OK', changed }
