#!lua flags=no-writes
-- count: a shard in numbers.
-- → queued × 3, delayed, in flight, parked, those of them in the lanes high and low, dead, results, controls, keys, outbox, done, dropped, results_dropped, merged, epoch,
--   is_held, holder, left, wanted, submitted_ms of the oldest, now, host
--include shard
--include lease
--include task
--include log
--include claimed
--include marks
--include portion

local f = redis.call('HMGET', shard, 'lease', 'until', 'ttl', 'want', 'gone', 'returned', 'done', 'dropped', 'results_dropped',
	'host', 'merged')
local state, epoch, holder = lease_read(f[1])
if not state then
	state, epoch, holder = 'free', 0, ''
end
local is_held = state == 'held'
-- One that does not say who it is leaves the name of the holder before it.
local host, of = string.match(f[10] or '', '^(%S+) (%x+)$')
local marks = marks_read(f[5])
local claimed = claimed_read()
local queued, oldest = {}, 0
local function see_age(bytes)
	local submitted = bytes and whole(task_field(bytes, 'submitted')) or 0
	if submitted > 0 and submitted < now and (oldest == 0 or submitted < oldest) then
		oldest = submitted
	end
end
for lane = 0, 2 do
	queued[lane] = math.max(0, redis.call('LLEN', lanes[lane]) - marks[lane] - claimed[lane].count)
	-- The first of the list is in flight if any of it is.  One that may be long is not read for its age alone.
	see_age(portion(lanes[lane], 8) > 1 and redis.call('LINDEX', lanes[lane], 0))
end
-- The first of each lane that is in flight; there are no more than an owner's window holds.
local first, given = {}, lasts()
for _, field in ipairs(redis.call('HKEYS', flight)) do
	local seq = seq_of(field, given)
	local lane = seq and math.floor(seq / LANE)
	if seq and seq < (first[lane] or math.huge) then
		first[lane] = seq
	end
end
for _, seq in pairs(first) do
	see_age(redis.call('HGET', flight, decimal(seq)))
end
local rare = at .. 'parkedlanes'
local function size(command, name)
	return redis.call(command, at .. name)
end
return { queued[0], queued[1], queued[2], size('ZCARD', 'delayed'), size('HLEN', 'flight') + #claimed_seqs(claimed), size('HLEN', 'parked'),
	redis.call('ZCOUNT', rare, '-inf', '(' .. decimal(LANE)), redis.call('ZCOUNT', rare, decimal(LANE), '+inf'),
	size('HLEN', 'dead'), size('ZCARD', 'results'), math.max(0, size('LLEN', 'control') - (whole(f[6]) or 0)), size('HLEN', 'keys'),
	size('LLEN', 'outbox') + size('LLEN', 'kept'), whole(f[7]) or 0, whole(f[8]) or 0, whole(f[9]) or 0, whole(f[11]) or 0, epoch,
	is_held and 1 or 0, holder, is_held and left_ms(f[2], f[3]) or 0, wanted(want_read(f[4], epoch)), oldest, now,
	of == holder and host or '' }
