-- Keys that are not free, and the queues in which their tasks wait.
-- …keys: key → "STATE SINCE TASKS DUE REASON".  …due: every such key by due time, held ones at +inf.
-- A record that cannot be read is kept as it is.  Its tasks wait in their queue, as those of a key that is held, until fsck
-- mends it or the key is given a new state.
-- …side: members KEY NUL hex(seq), all of score 0: a key's queue is a lexical range.  …parked: seq → envelope.
local keys, due_keys, side, parked = at .. 'keys', at .. 'due', at .. 'side', at .. 'parked'
local WAITING_MS = 30000 -- as STORE_WAITING_MS
local known = {}         -- records of this call by key; false: the key is free

local function key_get(name)
	local k = known[name]
	if k == nil then
		local text = redis.call('HGET', keys, name)
		k = false
		if text then
			local state, since, tasks, due, reason = string.match(text, '^(%a+) (%d+) (%d+) (%d+) (.*)$')
			local is_read = (state == 'waiting' or state == 'parked' or state == 'held') and #since <= 16 and #tasks <= 16 and
				#due <= 16
			k = is_read and { name = name, state = state, since = tonumber(since), tasks = tonumber(tasks),
				due = tonumber(due), reason = reason } or
				{ name = name, state = 'held', since = 0, tasks = 0, due = 0, is_unreadable = true,
				reason = 'its record cannot be read; quiver fsck --repair mends it' }
		end
		known[name] = k
	end
	return k
end

-- How many tasks wait for a key, counted.
local function side_count(name)
	return redis.call('ZLEXCOUNT', side, '[' .. name .. '\0', '(' .. name .. '\1')
end

local function key_set(name, state, due, reason)
	local k = key_get(name) or { name = name, tasks = 0 }
	if k.is_unreadable then
		k.is_unreadable, k.tasks = false, side_count(name)
	end
	k.state, k.due, k.reason, k.since, k.is_changed = state, due, reason, now, true
	known[name] = k
	return k
end

-- Writes what has changed.  A key without tasks that is not held becomes free.
local function keys_save()
	for name, k in pairs(known) do
		if k and k.is_changed and not k.is_unreadable then
			k.is_changed = false
			if k.tasks == 0 and k.state ~= 'held' then
				redis.call('HDEL', keys, name)
				redis.call('ZREM', due_keys, name)
				known[name] = false
			else
				redis.call('HSET', keys, name,
					string.format('%s %.0f %.0f %.0f ', k.state, k.since, k.tasks, k.due) .. k.reason)
				redis.call('ZADD', due_keys, k.state == 'held' and '+inf' or k.due, name)
			end
		end
	end
end

local function side_put(k, seq, bytes)
	redis.call('ZADD', side, 0, k.name .. '\0' .. hex(seq))
	redis.call('HSET', parked, seq, bytes)
	k.tasks, k.is_changed = k.tasks + 1, true
end

-- Up to `max` heads of a key's queue, or of what comes after the first `from` of them.
local function side_members(k, max, from)
	return redis.call('ZRANGEBYLEX', side, '[' .. k.name .. '\0', '(' .. k.name .. '\1', 'LIMIT', from or 0, max)
end

-- The seq of the first one, or nil.
local function side_head(k)
	local member = side_members(k, 1)[1]
	local seq = member and tonumber(string.sub(member, -16), 16)
	return seq and lanes[math.floor(seq / LANE)] and seq
end

-- Takes one task out of its key's queue; returns its bytes.
local function side_remove(k, seq)
	local bytes = redis.call('HGET', parked, seq)
	redis.call('ZREM', side, k.name .. '\0' .. hex(seq))
	redis.call('HDEL', parked, seq)
	k.tasks, k.is_changed = math.max(0, k.tasks - 1), true
	return bytes
end

-- What a person asked for: the store's part of it.  CANCEL (0) is the owner's alone.
local function control_apply(verb, name, reason)
	local k = key_get(name)
	if verb == 1 then
		key_set(name, 'held', 0, reason)
		return
	end
	if verb == 0 or not k or k.state == 'waiting' or (verb == 2 and k.state ~= 'held') then
		return
	end
	if verb == 4 then
		local seq = side_head(k)
		if seq and redis.call('HEXISTS', parked, seq) == 1 then
			local note = redis.call('HGET', notes, seq)
			redis.call('HDEL', notes, seq)
			dead_put_bytes(seq, side_remove(k, seq), note, 'skipped', '')
		end
	end
	-- Whatever is next is due now: also after a skip, since it was the head that had to wait.
	key_set(name, 'parked', now, reason)
end
