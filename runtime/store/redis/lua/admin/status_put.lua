#!lua flags=allow-oom
-- status_put: a host's document about itself, and what it has counted.  KEYS: the documents, when each ends, the app's
-- counters, what was counted of each host.  ARGV: nonce, document ('': remove it), keep_ms, the most counters, then per
-- counter name, before, value.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local nonce = ARGV[1]
for i, wanted in ipairs({ 'hash', 'zset', 'hash', 'hash' }) do
	local is = redis.call('TYPE', KEYS[i]).ok
	if is ~= 'none' and is ~= wanted then
		return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. is .. ', Quiver wants a ' .. wanted)
	end
end

local function whole(text)
	local number = type(text) == 'number' and text or (type(text) == 'string' and string.find(text, '^%d+$') and tonumber(text))
	return number and number >= 0 and number <= 9007199254740991 and number or nil
end

-- What was counted of this host, by name; empty if it is not known.
local is_read, counted = pcall(cmsgpack.unpack, redis.call('HGET', KEYS[4], nonce) or '')
if not is_read or type(counted) ~= 'table' then
	counted = {}
end
local most = tonumber(ARGV[4]) -- 0: this kind of document has nothing to do with counters
local names, news = redis.call('HLEN', KEYS[3]), {}
for i = 5, #ARGV, 3 do
	local name, value = ARGV[i], whole(ARGV[i + 2])
	local more = value and value - (whole(counted[name]) or whole(ARGV[i + 1]) or value)
	local total = redis.call('HGET', KEYS[3], name)
	if value then
		counted[name] = value
	end
	if more and more > 0 and (total or names < most) then
		names = names + (total and 0 or 1)
		news[#news + 1] = name
		news[#news + 1] = string.format('%.0f', math.min((whole(total) or 0) + more, 9007199254740991))
	end
end

for _, ended in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 64)) do
	redis.call('HDEL', KEYS[1], ended)
	redis.call('ZREM', KEYS[2], ended)
	if most > 0 then
		redis.call('HDEL', KEYS[4], ended)
	end
end
for i = 1, #news, 2 do
	redis.call('HSET', KEYS[3], news[i], news[i + 1])
end
if ARGV[2] == '' then
	redis.call('HDEL', KEYS[1], nonce)
	redis.call('ZREM', KEYS[2], nonce)
	if most > 0 then
		redis.call('HDEL', KEYS[4], nonce)
	end
else
	redis.call('HSET', KEYS[1], nonce, cmsgpack.pack({ now, ARGV[2] }))
	redis.call('ZADD', KEYS[2], now + ARGV[3], nonce)
	if #ARGV > 4 then
		redis.call('HSET', KEYS[4], nonce, cmsgpack.pack(counted))
	end
end
return redis.status_reply('OK')
