-- One task's outcome, for the one who waits for it.
local function reply_put(id, reply_ms, state, has_data, data, reason, note)
	if reply_ms > 0 then
		redis.call('SET', at .. 'reply:' .. id, cmsgpack.pack({ state, has_data, data, reason, note }), 'PXAT', now + reply_ms - 1)
	end
end

-- How many of the dead have the same handler, reason and first line of the error.  There are GROUPS_MAX groups at most, and
-- what finds no place counts under ''; the sum is that of the dead.
local GROUPS_MAX, GROUP_LINE = 64, 100
local function first_line(text)
	return string.match(string.sub(text or '', 1, GROUP_LINE), '^[^%c]*')
end

local function group_of(d)
	local n = note_read(d[7])
	local text = string.match(n.events[#n.events] or '', '^event:%d+ %S+ (.*)$') or ''
	text = string.gsub(text, ' ?@%S+ pid=.*$', '') -- where it was is no part of why
	return d[2] .. '\0' .. d[5] .. '\0' .. string.sub(text, 1, math.min(whole(d[9]) or GROUP_LINE, GROUP_LINE))
end

local function group_count(d, by)
	local groups, field = at .. 'deadgroups', group_of(d)
	if redis.call('HEXISTS', groups, field) == 0 and (by < 0 or redis.call('HLEN', groups) >= GROUPS_MAX) then
		field = ''
	end
	local tasks = (whole(redis.call('HGET', groups, field)) or 0) + by
	if tasks > 0 then
		redis.call('HSET', groups, field, decimal(tasks))
	else
		redis.call('HDEL', groups, field)
	end
end

-- A task becomes dead, with its history, and a reply says so if someone waits.
local function dead_put(task, reason, text, cost)
	local n = note_read(task.note)
	note_clear_start(n)
	if cost == 0 then
		note_event(n, 'dead', text)
	else
		note_charge(n, cost, text)
	end
	local note = note_write(n)
	local d = { task.id, task.handler, task.lane, now, reason, task.bytes, note, 0, #first_line(text) }
	local number = record_add('last_dead', 'dead', 10, decimal, cmsgpack.pack(d))
	group_count(d, 1)
	redis.call('ZADD', at .. 'deadnumbers', number, number)
	redis.call('ZADD', at .. 'deadids', 0, task.id .. '\0' .. hex(number))
	reply_put(task.id, task.reply_ms, 2, 0, '', reason, note)
end

-- The same for a task of which only the bytes are known.
local function dead_put_bytes(seq, bytes, note, reason, text)
	local lane = math.floor(seq / LANE)
	dead_put({ id = task_id(bytes, seq), handler = task_field(bytes, 'handler') or 'unknown', lane = lanes[lane] and lane or 1,
		reply_ms = whole(task_field(bytes, 'reply')) or 0, bytes = bytes, note = note }, reason, text, 0)
end

-- A task that is longer than any may be: the first of its lane, or `bytes`.  They move to a list of their own, which is not
-- read again by any script: the record has how many they are and the first of them.  Returns how many.
local LONG_SHOWN = 1024
local function dead_put_long(lane, seq, limit, note, bytes)
	-- It has its number before its record is complete, since the list is named after it.
	local number = record_add('last_dead', 'dead', 10, decimal, '')
	local list = at .. 'long.' .. decimal(number)
	if bytes then
		redis.call('RPUSH', list, bytes)
	else
		bytes = redis.call('LMOVE', lanes[lane], list, 'LEFT', 'RIGHT')
	end
	local n = note_read(note)
	note_event(n, 'dead', string.format('%d bytes, at most %d are allowed', #bytes, limit))
	local id = string.format('%s.%.0f-%s', lane_names[lane], seq % LANE, shard_number)
	local d = { id, 'unknown', lane, now, 'too long', string.sub(bytes, 1, LONG_SHOWN), note_write(n), #bytes }
	redis.call('HSET', at .. 'dead', number, cmsgpack.pack(d))
	group_count(d, 1)
	redis.call('ZADD', at .. 'deadnumbers', number, number)
	redis.call('ZADD', at .. 'deadids', 0, id .. '\0' .. hex(number))
	return #bytes
end

-- A task that stands in …flight or …parked under a number that the shard has not given becomes dead with its bytes.
-- Returns how many bytes these were; nil if there is no such task.
local function stray_bury(name, field)
	local bytes = redis.call('HGET', at .. name, field)
	if not bytes then
		return nil
	end
	-- A note under a number of a lane is that of the task which has it, or is to get it.
	local note
	if not lanes[math.floor((whole(field) or -1) / LANE)] then
		note = redis.call('HGET', notes, field)
		redis.call('HDEL', notes, field)
	end
	redis.call('HDEL', at .. name, field)
	-- By its own id, or by the number of its death: its seq is not unique.
	local number = whole(redis.call('HGET', shard, 'last_dead') or '0') + 1
	dead_put_bytes(3 * LANE + number, bytes, note, 'malformed',
		string.format('it stood %s under "%s", a number that was never given',
			name == 'flight' and 'in flight' or 'in a side queue', string.sub(field, 1, 64)))
	return #bytes
end
