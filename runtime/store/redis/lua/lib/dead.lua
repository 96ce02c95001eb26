-- One task's outcome, for the one who waits for it.
local function reply_put(id, reply_ms, state, has_data, data, reason, note)
	if reply_ms > 0 then
		redis.call('SET', at .. 'reply:' .. id, cmsgpack.pack({ state, has_data, data, reason, note }), 'PXAT', now + reply_ms - 1)
	end
end

-- A task becomes dead, with its history, and a reply says so if someone waits.
local function dead_put(task, reason, text, cost)
	local n = note_read(task.note)
	n.started = 0
	if cost == 0 then
		note_event(n, 'dead', text)
	else
		note_charge(n, cost, text)
	end
	local note = note_write(n)
	local number = redis.call('HINCRBY', shard, 'last_dead', 1)
	redis.call('HSET', at .. 'dead', number,
		cmsgpack.pack({ task.id, task.handler, task.lane, now, reason, task.bytes, note }))
	redis.call('ZADD', at .. 'deadnumbers', number, number)
	redis.call('ZADD', at .. 'deadids', 0, task.id .. '\0' .. hex(number))
	reply_put(task.id, task.reply_ms, 2, 0, '', reason, note)
end

-- A queued task that is longer than any may be, the first of its lane.  Its bytes move to a list of their own, which is
-- not read again by any script: the record has how many they are and the first of them.  Returns how many.
local LONG_SHOWN = 1024
local function dead_put_long(lane, seq, limit, note)
	local number = redis.call('HINCRBY', shard, 'last_dead', 1)
	local bytes = redis.call('LMOVE', lanes[lane], at .. 'long.' .. number, 'LEFT', 'RIGHT')
	local n = note_read(note)
	note_event(n, 'dead', string.format('%d bytes, at most %d are allowed', #bytes, limit))
	local id = string.format('%s.%.0f-%s', lane_names[lane], seq % LANE, shard_number)
	redis.call('HSET', at .. 'dead', number, cmsgpack.pack({ id, 'unknown', lane, now, 'too long',
		string.sub(bytes, 1, LONG_SHOWN), note_write(n), #bytes }))
	redis.call('ZADD', at .. 'deadnumbers', number, number)
	redis.call('ZADD', at .. 'deadids', 0, id .. '\0' .. hex(number))
	return #bytes
end

-- The same for a task of which only the bytes are known.
local function dead_put_bytes(seq, bytes, note, reason, text)
	dead_put({ id = task_id(bytes, seq), handler = task_field(bytes, 'handler') or 'unknown', lane = math.floor(seq / LANE),
		reply_ms = tonumber(task_field(bytes, 'reply') or 0) or 0, bytes = bytes, note = note }, reason, text, 0)
end
