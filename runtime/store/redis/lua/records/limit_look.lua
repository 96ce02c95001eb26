#!lua flags=no-writes
-- limit_look: a limit as it stands, with a page of its values.  KEYS: limit, values, rest.  ARGV: cursor, page.
-- → definition, refused, how many values, now, the next cursor, then value and record of each; or nothing
for i = 1, 2 do
	local is = redis.call('TYPE', KEYS[i]).ok
	if is ~= 'none' and is ~= 'hash' then
		return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. is .. ', Quiver wants a hash')
	end
end
local saved = redis.call('HMGET', KEYS[1], 'definition', 'refused')
if not saved[1] then
	return {}
end
local clock = redis.call('TIME')
local page = redis.call('HSCAN', KEYS[2], ARGV[1], 'COUNT', ARGV[2])
return { saved[1], saved[2] or '0', redis.call('HLEN', KEYS[2]), clock[1] * 1000 + math.floor(clock[2] / 1000), page[1], page[2] }
