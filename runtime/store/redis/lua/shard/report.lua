#!lua flags=allow-oom
-- report: what a worker says about a task that it runs.  ARGV: verb, id, seq, start, data, enough_ms, most entries.
-- → { 1 (on the list), 0 (not needed), -1 (another start, or none), -2 (the list is full); how long the start lasts }
--include shard
--include note
--include task
--include log
--include claimed

local verb, id, seq, start, data = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local enough, most = tonumber(ARGV[6]), tonumber(ARGV[7])
check_types('shard', 'high', 'normal', 'low', 'control', 'flight', 'notes')
check_counts('high', 'normal', 'low')

local bytes = flight_get(claimed_check(), seq)
local n = note_read(redis.call('HGET', notes, seq))
local left = math.min(86400000, math.max(0, n['until'] - now))
local is_same = string.sub(n.holder, 1, #start) == start and (#n.holder == #start or string.sub(start, -1) == '/')
if not bytes or task_id(bytes, seq) ~= id or n.started == 0 or not is_same then
	return { -1, 0 }
elseif verb == 6 and enough > 0 and left > enough then
	return { 0, left }
elseif redis.call('LLEN', control) - (whole(redis.call('HGET', shard, 'returned') or '0') or 0) >= most then
	return { -2, left }
end
redis.call('RPUSH', control, cmsgpack.pack({ verb, start, data, id, seq }))
return { 1, left }
