#!lua flags=allow-oom
-- commit: done with these results.  ARGV: consumer, numbers.  → per number 1, or 0 if it is not ours any more
--include shard
--include results

check_types('results', 'resultdata', 'leased', 'consumers')
local held = {}
for i = 2, #ARGV do
	local is_ours = redis.call('HGET', consumers, ARGV[i]) == ARGV[1]
	held[i - 1] = is_ours and result_remove(ARGV[i]) or 0
end
return held
