#!lua flags=no-writes
-- schedule_list: the schedules of a shard, or one.  ARGV: name ('': all), how many at most, 1: also deleted ones.
-- → how many cannot be read, then per schedule: name, state, version, next (0: none), last, last_seq, fired, skipped,
-- definition
--include shard
--include schedule

check_types('schedules')
local all, bad, reply = {}, 0, { 0 }
if ARGV[1] ~= '' then
	local packed = redis.call('HGET', schedules, ARGV[1])
	all = packed and { ARGV[1], packed } or {}
else
	all = redis.call('HGETALL', schedules)
end
for i = 1, #all, 2 do
	local s = schedule_unpack(all[i + 1])
	if not s or #reply > tonumber(ARGV[2]) * 9 then
		bad = bad + 1
	elseif s[1] ~= DELETED or ARGV[3] == '1' then
		local n = #reply
		reply[n + 1] = all[i]
		for j = 1, 7 do
			reply[n + 1 + j] = decimal(s[j])
		end
		reply[n + 9] = s[8]
	end
end
reply[1] = bad
return reply
