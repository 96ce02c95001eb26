#!lua flags=allow-oom
-- reschedule: another time for a delayed task that list or find showed.  ARGV: number, id, in how many milliseconds, at which
-- unix time instead (0: none).  → 1, or -1 (it is not delayed any more)
--include shard
--include note
--include task

local number, id = tonumber(ARGV[1]), ARGV[2]
local member = hex(number)
check_types('shard', 'delayed', 'later')
local task = later_read(redis.call('HGET', at .. 'later', member) or '')
if not task or task_id(task[2], task[1] * LANE + number) ~= id or not redis.call('ZSCORE', delayed, member) then
	return -1
end
local due = tonumber(ARGV[4]) > 0 and tonumber(ARGV[4]) or now + tonumber(ARGV[3])
local note = note_read(task[3])
note_event(note, 'rescheduled', decimal(due))
redis.call('HSET', at .. 'later', member, cmsgpack.pack({ task[1], task[2], note_write(note) }))
redis.call('ZADD', delayed, decimal(due), member)
return 1
