#!lua flags=allow-oom
-- forget: what has arrived leaves the outbox.  ARGV: lease, base, count.  A repeat finds another base.  → has_more
--include shard

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('outbox')
if check_counts('outbox_base').outbox_base == tonumber(ARGV[2]) then
	redis.call('LTRIM', at .. 'outbox', ARGV[3], -1)
	redis.call('HINCRBY', shard, 'outbox_base', ARGV[3])
end
return redis.call('EXISTS', at .. 'outbox')
