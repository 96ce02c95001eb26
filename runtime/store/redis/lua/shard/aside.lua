#!lua flags=allow-oom
-- aside: claimed tasks that the driver found no host can run, or not yet.  ARGV: lease, then msgpack of
-- { seq, due, '', '' } (to delayed) or { seq, 0, reason, text } (to the dead), and the longest envelope allowed; then for
-- high, normal and low the number and the first 512 bytes of the last element that was claimed in the list ('': none).  What
-- is not in flight is left alone, so it may be repeated.  → when the first of the delayed is due; 'FENCED', also if what is
-- claimed does not stand in its place: the next advance says so, too
--include shard
--include look
--include note
--include task
--include dead
--include log
--include claimed

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('shard', 'flight', 'notes', 'delayed', 'later', 'dead', 'deadnumbers', 'deadids', 'deadgroups', 'due', 'high', 'normal', 'low',
	'control')
check_counts('high', 'normal', 'low', 'last_delayed', 'last_dead')
local claimed = claimed_check()
for lane = 0, 2 do
	if claimed[lane].is_changed or
		claimed_is_other(claimed, lane, ARGV[4 + 2 * lane] - claimed[lane].base, ARGV[5 + 2 * lane]) then
		return 'FENCED'
	end
end
claimed_move(claimed)
for _, item in ipairs(cmsgpack.unpack(ARGV[2])) do
	local seq = item[1]
	local bytes = redis.call('HGET', flight, seq)
	if bytes then
		local note = redis.call('HGET', notes, seq) or ''
		local lane = math.floor(seq / LANE)
		redis.call('HDEL', flight, seq)
		redis.call('HDEL', notes, seq)
		if item[2] > 0 then
			delay(lane, item[2], bytes, note)
		elseif #bytes > tonumber(ARGV[3]) then
			dead_put_long(lane, seq, tonumber(ARGV[3]), note, bytes)
		else
			-- Whatever its bytes say: an id that names another shard would only mislead.
			dead_put({ id = string.format('%s.%.0f-%s', lane_names[lane], seq % LANE, shard_number), handler = 'unknown',
				lane = lane, reply_ms = 0, bytes = bytes, note = note }, item[3], item[4], 0)
		end
	end
end
look()
local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
first = first and tonumber(first) or math.huge
return { first > 9007199254740991 and -1 or math.max(0, first - now) }
