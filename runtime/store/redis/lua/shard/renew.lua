#!lua flags=allow-oom
-- renew: not numbered, a late one does no more than a renewal.  ARGV: lease, ttl.
-- → has_work, next_due, wanted, refused, left
--include shard
--include look
--include lease
--include log
--include claimed

local fields = redis.call('HMGET', shard, 'lease', 'want', 'until', 'returned')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
check_types('due', 'delayed', 'control')
local want = want_read(fields[2], tonumber(string.match(ARGV[1], ' (%d+) ')))
local refused, till = is_refused(want), fields[3]
if not refused then
	till = now + ARGV[2]
	redis.call('HSET', shard, 'until', till, 'ttl', ARGV[2])
end
local next_due, is_queued, controls = look()
if is_queued and redis.call('HEXISTS', shard, 'claimed') == 1 then
	is_queued = is_any_queued(claimed_read())
end
local has_work = is_queued or controls > (whole(fields[4]) or 0) or next_due == 0 or redis.call('EXISTS', at .. 'outbox') == 1
return { has_work and 1 or 0, next_due, wanted(want), refused and 1 or 0, left_ms(till, ARGV[2]) }
