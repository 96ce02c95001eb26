#!lua flags=allow-oom
-- status_put: a host's document about itself.  KEYS: quiver:{APP}:status, quiver:{APP}:statusends.
-- ARGV: nonce, document ('': remove it), keep_ms.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
redis.call('HLEN', KEYS[1]) -- fails if it is something else, as the next line does of the other
for _, nonce in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 64)) do
	redis.call('HDEL', KEYS[1], nonce)
	redis.call('ZREM', KEYS[2], nonce)
end
if ARGV[2] == '' then
	redis.call('HDEL', KEYS[1], ARGV[1])
	redis.call('ZREM', KEYS[2], ARGV[1])
else
	redis.call('HSET', KEYS[1], ARGV[1], cmsgpack.pack({ now, ARGV[2] }))
	redis.call('ZADD', KEYS[2], now + ARGV[3], ARGV[1])
end
return redis.status_reply('OK')
