#!lua flags=allow-oom
-- cancel: a task that list or find showed.  ARGV: state, number, id, key.  → 0 (dead), 1 (its owner is told), -1 (not there)
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include key
--include marks

local state, number, id, name = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]
local QUEUED, DELAYED, IN_FLIGHT, PARKED = 0, 1, 2, 3
check_types('shard', 'high', 'normal', 'low', 'delayed', 'control', 'flight', 'notes', 'keys', 'due', 'named', 'side', 'parked', 'parkedlanes', 'later',
	'dead', 'deadnumbers', 'deadids', 'deadgroups')

check_counts('high', 'normal', 'low', 'last_dead')
local claimed = claimed_check()

local function is_meant(bytes, seq)
	return bytes and task_id(bytes, seq) == id
end

local function make_dead(seq, bytes, note)
	dead_put_bytes(seq, bytes, note, 'cancelled', '')
	return 0
end

local function note_take(seq)
	local note = redis.call('HGET', notes, seq)
	redis.call('HDEL', notes, seq)
	return note
end

local function cancel_queued()
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
	return make_dead(number, bytes, note_take(number))
end

local function cancel_flight()
	local bytes = flight_get(claimed, number)
	if not is_meant(bytes, number) then
		return -1
	end
	if string.sub(redis.call('HGET', shard, 'lease') or '', 1, 5) == 'held ' then
		redis.call('RPUSH', control, cmsgpack.pack({ 0, name, '', id, number }))
		return 1
	end
	claimed_move(claimed)
	redis.call('HDEL', flight, number)
	return make_dead(number, bytes, note_take(number))
end

local function cancel_delayed()
	local member = hex(number)
	local task = record_read(redis.call('HGET', at .. 'later', member) or '', 'number', 'string', 'string')
	local seq = task and task[1] * LANE + number
	if not task or not is_meant(task[2], seq) then
		return -1
	end
	redis.call('HDEL', at .. 'later', member)
	redis.call('ZREM', delayed, member)
	return make_dead(seq, task[2], task[3])
end

local function cancel_parked()
	local k = key_get(name)
	local is_there = k and redis.call('ZSCORE', side, name .. '\0' .. hex(number))
	if not is_there or not is_meant(redis.call('HGET', parked, number), number) then
		return -1
	end
	make_dead(number, side_remove(k, number), note_take(number))
	keys_save()
	return 0
end

if state == QUEUED then
	return cancel_queued()
elseif state == IN_FLIGHT then
	return cancel_flight()
elseif state == DELAYED then
	return cancel_delayed()
end
return cancel_parked()
