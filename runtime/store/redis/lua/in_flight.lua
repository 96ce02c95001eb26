#!lua flags=no-writes
-- in_flight: the next page after acquire.  ARGV: lease, after_seq, page.  → has_more, page, now
--include shard
--include task
--include page

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
local page, has_more = flight_page(tonumber(ARGV[2]), tonumber(ARGV[3]))
return { has_more, page, now }
