#!lua flags=allow-oom
-- in_flight: the next page after acquire.  ARGV: lease, after_seq, page.  → has_more, page, now
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include page

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('shard', 'high', 'normal', 'low', 'flight', 'notes', 'keys', 'dead', 'deadnumbers', 'deadids', 'deadgroups')
check_counts('high', 'normal', 'low', 'last_dead')
local page, has_more = flight_page(claimed_check(), tonumber(ARGV[2]), tonumber(ARGV[3]))
return { has_more, page, now }
