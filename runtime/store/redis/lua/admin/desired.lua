#!lua flags=allow-oom
-- desired: sets (1) or removes (0) one name of the desired state.  KEYS: quiver:{APP}:app, quiver:{APP}:desired.
-- ARGV: set, name, value, max.  The version is a field of the app, which every host listens to.  → version, or 0: too many
for i = 1, 2 do
	local is = redis.call('TYPE', KEYS[i]).ok
	if is ~= 'none' and is ~= 'hash' then
		return redis.error_reply('WRONGTYPE ' .. KEYS[i] .. ' is a ' .. is .. ', Quiver wants a hash')
	end
end
local version = redis.call('HGET', KEYS[1], 'desired_version') or '0'
if #version > 15 or not string.find(version, '^%d+$') or string.find(version, '^0%d') then
	return redis.error_reply('BADVALUE ' .. KEYS[1] .. ': desired_version is "' .. string.sub(version, 1, 64) .. '", not a number; set it to one that is higher than before')
end
if ARGV[1] == '1' then
	if redis.call('HLEN', KEYS[2]) - redis.call('HEXISTS', KEYS[2], ARGV[2]) >= tonumber(ARGV[4]) then
		return 0
	end
	redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
else
	redis.call('HDEL', KEYS[2], ARGV[2])
end
return redis.call('HINCRBY', KEYS[1], 'desired_version', 1)
