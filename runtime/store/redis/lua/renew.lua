#!lua flags=allow-oom
-- renew: not numbered, a late one does no more than a renewal.  ARGV: lease, ttl.
-- → has_work, next_due, wanted, refused, left
--include shard
--include look
--include lease

local fields = redis.call('HMGET', shard, 'lease', 'want', 'until')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
check_types('due', 'delayed', 'control')
local returned = check_numbers('returned')[1]
local want = want_read(fields[2], tonumber(string.match(ARGV[1], ' (%d+) ')))
local refused, till = is_refused(want), fields[3]
if not refused then
	till = now + ARGV[2]
	redis.call('HSET', shard, 'until', till, 'ttl', ARGV[2])
end
local next_due, is_queued, controls = look()
local has_work = is_queued or controls > returned or next_due == 0 or redis.call('EXISTS', at .. 'outbox') == 1
return { has_work and 1 or 0, next_due, wanted(want), refused and 1 or 0, left_ms(till, ARGV[2]) }
