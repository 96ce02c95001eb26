#!lua flags=allow-oom
-- wanting_set: a host wants help with a handler's tasks, or does not any more.  KEYS: see lib/wanting.lua.  ARGV: handler,
-- nonce, tasks (0: none), keep_ms, the most records.  → 1, or 0: there are too many
--include wanting

local name = ARGV[1] .. ' ' .. ARGV[2]
local count = redis.call('GET', wanting_set) or '0'
if #count > 15 or not string.find(count, '^%d+$') then
	return redis.error_reply('BADVALUE ' .. wanting_set .. ' is no number; DEL it')
end
for _, ended in ipairs(redis.call('ZRANGEBYSCORE', wanting_ends, '-inf', now, 'LIMIT', 0, 16)) do
	redis.call('HDEL', wanting, ended)
	redis.call('ZREM', wanting_ends, ended)
end
if ARGV[3] == '0' then
	redis.call('HDEL', wanting, name)
	redis.call('ZREM', wanting_ends, name)
	return 1
end
local before = redis.call('HGET', wanting, name)
if not before and redis.call('HLEN', wanting) >= tonumber(ARGV[5]) then
	return 0
end
local _, since = wanting_read(before)
redis.call('HSET', wanting, name, string.format('%s %.0f', ARGV[3], since or now))
redis.call('ZADD', wanting_ends, string.format('%.0f', now + ARGV[4]), name)
redis.call('SET', wanting_set, string.format('%.0f', tonumber(count) + 1))
return 1
