#!lua flags=allow-oom
-- move: a waiting task that list or find showed goes to the tail of another lane.  ARGV: state, number, id, key, lane.
-- → 0 (it is there), 1 (its owner is told), -1 (not there), -2 (the first of a key that waits for its retry)
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include key
--include marks

local state, number, id, name, to = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], tonumber(ARGV[5])
local QUEUED, DELAYED, IN_FLIGHT = 0, 1, 2
local NAMES = { [0] = 'high', 'normal', 'low' }
check_types('shard', 'high', 'normal', 'low', 'delayed', 'control', 'flight', 'notes', 'keys', 'due', 'named', 'side', 'parked', 'parkedlanes', 'later')

check_counts('high', 'normal', 'low')
local claimed = claimed_check()

local function is_meant(bytes, seq)
	return bytes and task_id(bytes, seq) == id
end

local function moved_note(before)
	local n = note_read(before or '')
	note_event(n, 'moved', NAMES[to])
	return note_write(n)
end

local function note_take(seq)
	local note = redis.call('HGET', notes, seq)
	redis.call('HDEL', notes, seq)
	return note
end

local function put(seq, bytes)
	append(to, bytes, moved_note(note_take(seq)), bases())
	return 0
end

local function move_queued()
	local lane = math.floor(number / LANE)
	local c = claimed[lane]
	local index = c and number % LANE - c.base - 1
	local bytes = c and index >= c.count and redis.call('LINDEX', lanes[lane], index)
	if not is_meant(bytes, number) then
		return -1
	end
	local marks = marks_read(redis.call('HGET', shard, 'gone'))
	redis.call('LSET', lanes[lane], index, MARK)
	marks[lane] = marks[lane] + 1
	marks_write(marks)
	return put(number, bytes)
end

local function move_flight()
	local bytes = flight_get(claimed, number)
	if not is_meant(bytes, number) then
		return -1
	end
	if string.sub(redis.call('HGET', shard, 'lease') or '', 1, 5) == 'held ' then
		redis.call('RPUSH', control, cmsgpack.pack({ 8, name, NAMES[to], id, number }))
		return 1
	end
	claimed_move(claimed)
	redis.call('HDEL', flight, number)
	return put(number, bytes)
end

local function move_delayed()
	local member = hex(number)
	local task = later_read(redis.call('HGET', at .. 'later', member) or '')
	if not task or not is_meant(task[2], task[1] * LANE + number) then
		return -1
	end
	redis.call('HSET', at .. 'later', member, cmsgpack.pack({ to, task[2], moved_note(task[3]) }))
	return 0
end

local function move_parked()
	local k = key_get(name)
	local is_there = k and not k.is_unreadable and redis.call('ZSCORE', side, name .. '\0' .. hex(number))
	if not is_there or not is_meant(redis.call('HGET', parked, number), number) then
		return -1
	end
	if k.state == 'parked' and tonumber(side_field(side_members(k, 1)[1])) == number then
		return -2
	end
	put(number, side_remove(k, number))
	keys_save()
	return 0
end

if state == QUEUED then
	return move_queued()
elseif state == IN_FLIGHT then
	return move_flight()
elseif state == DELAYED then
	return move_delayed()
end
return move_parked()
