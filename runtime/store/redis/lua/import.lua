#!lua
-- import: tasks as another store had them.  ARGV: per task state (0 queued, 1 delayed, 4 dead), lane, envelope, note,
-- due_in or at, id, handler, reason.
--include shard
--include log

check_types('shard', 'high', 'normal', 'low', 'delayed', 'later', 'notes', 'dead', 'deadnumbers', 'deadids')
local last = lasts()
check_numbers('last_delayed', 'last_dead')
for i = 1, #ARGV, 8 do
	local state, lane, bytes, note, when, id = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3],
		tonumber(ARGV[i + 4]), ARGV[i + 5]
	if state == 0 then
		append(lane, bytes, note, last)
	elseif state == 1 then
		delay(lane, now + when, bytes, note)
	else
		local number = redis.call('HINCRBY', shard, 'last_dead', 1)
		redis.call('HSET', at .. 'dead', number,
			cmsgpack.pack({ id, ARGV[i + 6], lane, when, ARGV[i + 7], bytes, note }))
		redis.call('ZADD', at .. 'deadnumbers', number, number)
		redis.call('ZADD', at .. 'deadids', 0, id .. '\0' .. hex(number))
	end
end
return redis.status_reply('OK')
