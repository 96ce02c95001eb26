#!lua flags=allow-oom
-- release: a numbered call; a repeat of it is fine.  ARGV: epoch and nonce, call, 'free' or, by a guard, 'held': the
-- lease ends, and the next owner sees that its holder died.  → 'OK'
local fields = redis.call('HMGET', KEYS[1], 'lease', 'call')
local call = tonumber(fields[2] or 0) or -1
if fields[1] == 'free ' .. ARGV[1] and call == tonumber(ARGV[2]) then
	return 'OK'
end
if fields[1] ~= 'held ' .. ARGV[1] or call + 1 ~= tonumber(ARGV[2]) then
	return 'FENCED'
end
redis.call('HSET', KEYS[1], 'lease', ARGV[3] .. ' ' .. ARGV[1], 'until', 0, 'call', ARGV[2], 'last', '')
return 'OK'
