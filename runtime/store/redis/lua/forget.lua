#!lua flags=allow-oom
-- forget: what has arrived leaves the outbox.  ARGV: lease, base, count.  A repeat finds another base.  → has_more
--include shard

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('outbox')
local base = check_numbers('outbox_base')[1]
if base == tonumber(ARGV[2]) then
	redis.call('LTRIM', at .. 'outbox', ARGV[3], -1)
	redis.call('HSET', shard, 'outbox_base', string.format('%.0f', base + ARGV[3]))
end
return redis.call('EXISTS', at .. 'outbox')
