-- Keys that are not free, and the queues in which their tasks wait.
-- …keys: key → "STATE SINCE TASKS DUE REASON"; of one that waits for a name (state `named`) "named SINCE TASKS 0 NAME REASON".
-- …due: every such key by due time, held and named ones at +inf.  …named: NAME NUL hex(since) KEY, all of score 0: the keys
-- that wait for a name are a lexical range, by time.
-- A record that cannot be read is kept as it is.  Its tasks wait in their queue, as those of a key that is held, until fsck
-- mends it or the key is given a new state.
-- …side: members KEY NUL hex(seq), all of score 0: a key's queue is a lexical range.  …parked: seq → envelope.
-- …parkedlanes: the seqs of those in the lanes high and low, by themselves, so that a lane's are counted at once.  All others
-- are of the lane normal: most are, and cost nothing here.
local keys, due_keys, side, parked = at .. 'keys', at .. 'due', at .. 'side', at .. 'parked'
local named = at .. 'named'
local rare = { key = at .. 'parkedlanes' }
local WAITING_MS = 30000 -- as STORE_WAITING_MS
local known = {}         -- records of this call by key; false: the key is free

-- Its place in …named; nil if it waits for no name.
local function key_place(k)
	return k.state == 'named' and k.waits .. '\0' .. hex(k.since) .. k.name or nil
end

local function key_get(name)
	local k = known[name]
	if k == nil then
		local text = redis.call('HGET', keys, name)
		k = false
		if text then
			local state, since, tasks, due, reason = string.match(text, '^(%a+) (%d+) (%d+) (%d+) (.*)$')
			local waits
			if state == 'named' then
				waits, reason = string.match(reason, '^([!-~]+) (.*)$')
			end
			local is_read = (state == 'waiting' or state == 'parked' or state == 'held' or waits) and whole(since) and
				whole(tasks) and whole(due)
			k = is_read and { name = name, state = state, since = tonumber(since), tasks = tonumber(tasks),
				due = tonumber(due), reason = reason, waits = waits } or
				{ name = name, state = 'held', since = 0, tasks = 0, due = 0, is_unreadable = true,
				reason = 'its record cannot be read; quiver fsck --repair mends it' }
			k.place = key_place(k)
		end
		known[name] = k
	end
	return k
end

-- How many tasks wait for a key, counted.
local function side_count(name)
	return redis.call('ZLEXCOUNT', side, '[' .. name .. '\0', '(' .. name .. '\1')
end

-- `waits`: the name that it waits for, if the state is `named`.
local function key_set(name, state, due, reason, waits)
	local k = key_get(name) or { name = name, tasks = 0 }
	if k.is_unreadable then
		k.is_unreadable, k.tasks = false, side_count(name)
	end
	k.state, k.due, k.reason, k.since, k.waits, k.is_changed = state, due, reason, now, waits, true
	known[name] = k
	return k
end

-- Up to `max` heads of a key's queue.
local function side_members(k, max)
	return redis.call('ZRANGEBYLEX', side, '[' .. k.name .. '\0', '(' .. k.name .. '\1', 'LIMIT', 0, max)
end

-- Writes what has changed.  A key without tasks that is not held becomes free.
local function keys_save()
	for name, k in pairs(known) do
		if k and k.is_changed and not k.is_unreadable then
			k.is_changed = false
			-- Whatever the record said: a key for which tasks wait is not free.
			if k.tasks <= 0 then
				k.tasks = #side_members(k, 1)
			end
			local is_free = k.tasks == 0 and k.state ~= 'held'
			local place = not is_free and key_place(k) or nil
			if k.place and k.place ~= place then
				redis.call('ZREM', named, k.place)
			end
			if is_free then
				redis.call('HDEL', keys, name)
				redis.call('ZREM', due_keys, name)
				known[name] = false
			else
				redis.call('HSET', keys, name, string.format('%s %.0f %.0f %.0f ', k.state, k.since, k.tasks, k.due) ..
					(place and k.waits .. ' ' or '') .. k.reason)
				redis.call('ZADD', due_keys, (place or k.state == 'held') and '+inf' or k.due, name)
				if place then
					redis.call('ZADD', named, 0, place)
				end
				k.place = place
			end
		end
	end
end

function rare.is(seq)
	return seq < LANE or seq >= 2 * LANE
end

local function side_put(k, seq, bytes)
	redis.call('ZADD', side, 0, k.name .. '\0' .. hex(seq))
	redis.call('HSET', parked, seq, bytes)
	if rare.is(seq) then
		redis.call('ZADD', rare.key, seq, decimal(seq))
	end
	k.tasks, k.is_changed = k.tasks + 1, true
end

-- Where the bytes of a member are in …parked.
local function side_field(member)
	return string.format('%.0f', tonumber(string.sub(member, -16), 16) or 0)
end

-- Up to `max` heads of a key's queue: their members and where their bytes are.  And the members that are none, because
-- nobody gave the number, or nothing is there under it.  Of both together no more than `room` bytes, but the first if
-- `is_first`: HSTRLEN tells sizes without reading, and 0 of what is not there.  How many bytes these are, and whether that
-- was why there are no more.
local function side_read(k, max, last, room, is_first)
	local members, seqs, strays, bytes = {}, {}, {}, 0
	for i, member in ipairs(max > 0 and side_members(k, max) or {}) do
		local field = side_field(member)
		local size = redis.call('HSTRLEN', parked, field)
		if bytes + size > room and not (is_first and i == 1) then
			return members, seqs, strays, bytes, true
		end
		bytes = bytes + size
		if (size > 0 or redis.call('HEXISTS', parked, field) == 1) and #member == #k.name + 17 and
			seq_is_given(tonumber(field), last) then
			members[#members + 1], seqs[#seqs + 1] = member, field
		else
			strays[#strays + 1] = member
		end
	end
	return members, seqs, strays, bytes, false
end

-- Sets these aside.
local function side_bury(k, strays)
	for _, member in ipairs(strays) do
		redis.call('ZREM', side, member)
		redis.call('ZREM', rare.key, side_field(member))
		stray_bury('parked', side_field(member))
		k.tasks, k.is_changed = k.tasks - 1, true
	end
end

-- Takes one task out of its key's queue; returns its bytes.
local function side_remove(k, seq)
	local bytes = redis.call('HGET', parked, seq)
	redis.call('ZREM', side, k.name .. '\0' .. hex(seq))
	redis.call('HDEL', parked, seq)
	if rare.is(seq) then
		redis.call('ZREM', rare.key, decimal(seq))
	end
	k.tasks, k.is_changed = k.tasks - 1, true
	return bytes
end

-- One of them, as …control keeps it: verb, key, reason, id, seq; nil if it cannot be read.  Of what a worker says (6, 7) the
-- key is the start that it is about, and the reason is what it says; of a move (8) the reason is the lane.
local function control_read(entry)
	local c = record_read(entry, 'number', 'string', 'string', 'string', 'number')
	return c and c[1] <= 8 and c[2] ~= '' and #c[2] <= 255 and c or nil
end

-- What a person asked for: the store's part of it.  CANCEL (0), SCHEDULES (5) and what workers say are the owner's alone.
local function control_apply(verb, name, reason)
	if verb >= 5 then
		return
	end
	local k = key_get(name)
	if verb == 1 then
		key_set(name, 'held', 0, reason)
		return
	end
	if verb == 0 or not k or k.state == 'waiting' or (verb == 2 and k.state ~= 'held') then
		return
	end
	if verb == 4 then
		local _, seqs, strays = side_read(k, 1, lasts(), 0, true)
		side_bury(k, strays)
		if seqs[1] then
			local seq = tonumber(seqs[1])
			local note = redis.call('HGET', notes, seq)
			redis.call('HDEL', notes, seq)
			dead_put_bytes(seq, side_remove(k, seq), note, 'skipped', '')
		end
	end
	-- Whatever is next is due now: also after a skip, since it was the head that had to wait.
	key_set(name, 'parked', now, reason)
end
