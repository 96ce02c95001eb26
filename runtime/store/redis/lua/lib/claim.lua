-- The part of advance that claims.  Works on advance's own variables.
-- Delayed tasks whose time has come join the log, behind what is there.
local function delayed_join()
	for _, number in ipairs(redis.call('ZRANGEBYSCORE', delayed, '-inf', now, 'LIMIT', 0, 256)) do
		local packed = redis.call('HGET', at .. 'later', number)
		local task = packed and later_read(packed)
		if packed and not task then
			-- It is kept, and is never due.
			redis.call('ZADD', delayed, '+inf', number)
			trouble('delayed %s: its record cannot be read', number)
		else
			redis.call('ZREM', delayed, number)
			redis.call('HDEL', at .. 'later', number)
		end
		if task then
			append(task[1], task[2], task[3], last)
			lane_sizes[task[1]] = lane_sizes[task[1]] + 1
			has_notes = has_notes or task[3] ~= ''
			moved = moved + #task[2]
		end
		if moved >= PORTION_BYTES then
			break
		end
	end
end

-- The lane of a key's head; nil if it has none that can be one.
local function head_lane(k)
	local head = side_members(k, 1)[1]
	local lane = head and tonumber(string.sub(head, -16, -13), 16)
	return lane and want[lane] and lane
end

-- So many keys that are due are looked at in one call, though there may be room for fewer: some of them may be of a lane
-- that has none.
local DUE_LOOKS = 64
local MERGE_TASKS = 16 -- as STORE_MERGE_TASKS

-- The heads of keys whose time has come.  One whose lane has no room stays where it is.  Returns the lanes of these.  If
-- none had room, what is behind them is not looked at either before it has; otherwise the next call goes on there at once.
local function due_take(max)
	keys_save()
	if not has_keys and not next(known) then
		return {}
	end
	local waits, before, looks = {}, count, math.max(max, DUE_LOOKS)
	local names = redis.call('ZRANGEBYSCORE', due_keys, '-inf', now, 'LIMIT', 0, looks)
	local is_all = #names < looks
	for _, name in ipairs(names) do
		local k = key_get(name)
		local lane = k and not k.is_unreadable and head_lane(k)
		if count == room or moved >= PORTION_BYTES then
			is_all = false
			break
		elseif k and k.is_unreadable then
			redis.call('ZADD', due_keys, '+inf', name)
			trouble('key %s: its record cannot be read', name)
		elseif lane and want[lane] == 0 then
			waits[lane] = true
		elseif k then
			local taken = count
			local head = side_take(k, 1)
			-- What it may be merged with comes along, so that it does not start before.
			if lane and head and k.tasks > 0 and task_field(head, 'merge') == '1' then
				side_take(k, math.min(want[lane], MERGE_TASKS) - 1)
			end
			if lane then
				want[lane] = math.max(0, want[lane] - (count - taken))
			end
		else
			redis.call('ZREM', due_keys, name)
		end
	end
	return (is_all or count == before) and waits or {}
end

local marks = marks_read(fields[4])
local bytes_claimed = 0
local diverted = { parked = {}, side = {}, rare = {} } -- behind others of their keys

-- A task that has just been taken from its lane: in flight, or behind others of its key.
local function lane_settle(lane, seq, bytes)
	if marks[lane] > 0 and bytes == MARK then
		marks[lane] = marks[lane] - 1
		return
	end
	bytes_claimed, moved = bytes_claimed + #bytes, moved + #bytes
	local k = has_keys and key_get(task_key(bytes, seq))
	if k then
		local field, d = string.format('%d', seq), diverted
		d.side[#d.side + 1] = 0
		d.side[#d.side + 1] = k.name .. '\0' .. hex(seq)
		d.parked[#d.parked + 1] = field
		d.parked[#d.parked + 1] = bytes
		if lane ~= 1 then
			d.rare[#d.rare + 1] = field -- the score: the number itself
			d.rare[#d.rare + 1] = field
		end
		k.tasks, k.is_changed = k.tasks + 1, true
	else
		put[#put + 1] = string.format('%d', seq)
		put[#put + 1] = bytes
		claim_add(seq, bytes, note_get(seq))
	end
end

-- The head of a lane, longer than any task may be: dead, without having been in flight.
local function long_settle(lane)
	last[lane] = last[lane] + 1
	lane_sizes[lane] = lane_sizes[lane] - 1
	local seq = lane * LANE + last[lane]
	local size = dead_put_long(lane, seq, limit, note_get(seq))
	note_remove(string.format('%d', seq))
	moved, long_count = moved + size, long_count + 1
	trouble('task %s.%.0f-%s: too long, %d bytes; it is dead', lane_names[lane], last[lane], shard_number, size)
end

-- How many bytes the list's first node has at least, which is found out without reading it: there are no more nodes than
-- elements.
local function head_least(list)
	local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', 1)
	return type(bytes) == 'number' and (bytes - 512) / redis.call('LLEN', list) or 0
end

-- True if a first node of so many bytes can only be one element longer than `limit`: one of several elements has at most
-- 64 KiB, and what is allocated at most a quarter more than what is needed.
local function is_certainly_longer(least, limit)
	return least > 1.25 * limit + 131072
end

-- What is diverted counts as work, too: a call is bounded by what it looks at, not by what it returns.
local function lanes_claim()
	local looks = 256
	for lane = 0, 2 do
		local stop = math.min(count + want[lane], room)
		while lane_sizes[lane] > 0 and count < stop and looks > 0 and moved < PORTION_BYTES and
			(bytes_claimed < want_bytes or looks == 256) do
			local taken = 0
			local asked, is_large = portion(lanes[lane], math.min(stop - count, looks, lane_sizes[lane]))
			local least = is_large and asked == 1 and head_least(lanes[lane]) or 0
			local is_long = is_certainly_longer(least, limit)
			if moved > 0 and moved + least > 1.25 * PORTION_BYTES then
				return -- it would be too much for this call; the next one begins with it
			end
			for _, bytes in ipairs(is_long and {} or redis.call('LRANGE', lanes[lane], 0, asked - 1)) do
				is_long = #bytes > limit
				if is_long or (looks < 256 and bytes_claimed >= want_bytes) then
					break
				end
				taken, looks = taken + 1, looks - 1
				lane_settle(lane, lane * LANE + last[lane] + taken, bytes)
			end
			if taken > 0 then
				redis.call('LTRIM', lanes[lane], taken, -1)
				last[lane], lane_sizes[lane] = last[lane] + taken, lane_sizes[lane] - taken
			end
			local wrong = is_long and wrong_type('dead', 'deadnumbers', 'deadids', 'deadgroups')
			if wrong then
				trouble('a task is too long, and stays where it is: %s', wrong)
				return
			elseif is_long then
				looks = looks - 1
				long_settle(lane)
			elseif taken == 0 then
				break
			end
		end
	end
end

local function claim()
	local waits = {}
	local max = math.min(want[0] + want[1] + want[2], room - count)
	if max > 0 and has_delayed then
		delayed_join()
	end
	if max > 0 then
		waits = due_take(max)
	end
	keys_save()
	has_keys = redis.call('EXISTS', keys) == 1
	lanes_claim()
	if #diverted.parked > 0 then
		redis.call('HSET', parked, unpack(diverted.parked))
		redis.call('ZADD', side, unpack(diverted.side))
		if #diverted.rare > 0 then
			redis.call('ZADD', rare.key, unpack(diverted.rare))
		end
	end
	return waits
end
