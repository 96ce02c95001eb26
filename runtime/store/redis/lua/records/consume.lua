#!lua flags=allow-oom
-- consume: the oldest results that nobody holds.  ARGV: consumer, lease_ms, max, results_max, results_age.
-- → per result: number, at, id, key, handler, data, note
--include shard
--include results

check_types('shard', 'results', 'resultdata', 'leased', 'consumers')
check_counts('results_dropped')
results_trim(64, tonumber(ARGV[4]), tonumber(ARGV[5]))
local held, held_count = {}, 0
for _, number in ipairs(redis.call('ZRANGEBYSCORE', leased, '(' .. now, '+inf')) do
	held[number] = true
	held_count = held_count + 1
end
local max = math.min(tonumber(ARGV[3]), 1024 - held_count)
local rows, count, bytes = {}, 0, 0
for _, number in ipairs(max > 0 and redis.call('ZRANGE', results, 0, held_count + max - 1) or {}) do
	if count == max or bytes >= 1048576 then
		break
	end
	local packed = not held[number] and whole(number) and redis.call('HGET', resultdata, number)
	local r = packed and result_read(packed)
	if r then
		redis.call('ZADD', leased, now + ARGV[2], number)
		redis.call('HSET', consumers, number, ARGV[1])
		for _, value in ipairs({ tonumber(number), r[4], r[1], r[2], r[3], r[5], type(r[6]) == 'string' and r[6] or '' }) do
			rows[#rows + 1] = value
		end
		count, bytes = count + 1, bytes + #packed
	end
end
return rows
