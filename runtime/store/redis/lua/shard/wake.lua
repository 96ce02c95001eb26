#!lua flags=allow-oom
-- wake: keys that wait for a name are due now, those that have waited longest.  ARGV: lease, call, name, max.
-- → how many, whether others wait for it
--include shard
--include look
--include note
--include task
--include dead
--include log
--include key

local fields = redis.call('HMGET', shard, 'lease', 'call')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
local call, last_call = tonumber(ARGV[2]), check_counts('call').call
if call ~= last_call + 1 and call ~= last_call then
	return 'FENCED'
end
check_types('keys', 'due', 'named', 'side', 'delayed', 'control')
local waits, max, woken = ARGV[3], tonumber(ARGV[4]), 0

local function members(count)
	return redis.call('ZRANGEBYLEX', named, '[' .. waits .. '\0', '(' .. waits .. '\1', 'LIMIT', 0, count)
end

if call > last_call then
	for _, member in ipairs(max > 0 and members(max) or {}) do
		local name = string.sub(member, #waits + 18)
		local k = name ~= '' and key_get(name)
		if k and k.place == member then
			k.state, k.due, k.is_changed = 'waiting', now, true
			woken = woken + 1
		else
			-- It waits for something else, or its record cannot be read: fsck says so.
			redis.call('ZREM', named, member)
		end
	end
	keys_save()
	redis.call('HSET', shard, 'call', ARGV[2], 'last', '')
end
local has_more = #members(1)
look()
return { woken, has_more }
