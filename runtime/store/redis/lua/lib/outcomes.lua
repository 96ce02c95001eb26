-- The part of advance that commits outcomes.  Works on advance's own variables.
local done, gone, results_put = 0, 0, 0
local MERGED_KEPT, MERGED_MS = 1000, 86400000 -- as STORE_MERGED_KEPT and STORE_MERGED_MS
local DONE, RETRY, HOLD, DEAD, DIVERT, START, INTERRUPTED, CHECKPOINT, MERGE = 0, 1, 2, 3, 4, 5, 6, 7, 8
-- MOVE is 9, and a literal below: a script has 200 local variables at most, and advance has nearly as many.

-- Moves up to `max` heads of a key's queue back in flight, and no more than a call's bytes.  Returns the first one's bytes.
local function side_take(k, max)
	local first
	max = math.min(max, room - count)
	local members, seqs, strays, bytes, is_cut = side_read(k, max, last, PORTION_BYTES - moved, moved == 0)
	moved = moved + bytes
	if #strays > 0 then
		side_bury(k, strays)
		trouble('key %s: %d places in its queue are of no task; what stood there is dead', k.name, #strays)
	end
	if #seqs > 0 then
		local tasks = redis.call('HMGET', parked, unpack(seqs))
		local their_notes = has_notes and redis.call('HMGET', notes, unpack(seqs)) or {}
		local rares = {}
		for i, seq in ipairs(seqs) do
			rares[#rares + 1] = rare.is(tonumber(seq)) and seq or nil
			put[#put + 1] = seq
			put[#put + 1] = tasks[i]
			first = first or tasks[i]
			claim_add(tonumber(seq), tasks[i], their_notes[i])
		end
		redis.call('HDEL', parked, unpack(seqs))
		redis.call('ZREM', side, unpack(members))
		if #rares > 0 then
			redis.call('ZREM', rare.key, unpack(rares))
		end
		k.tasks = k.tasks - #members
	end
	-- Behind what was set aside, or had no room, the next call goes on at once: nobody would refill the key.
	local is_next = #seqs == 0 and (#strays > 0 or is_cut or max == 0)
	k.state, k.due, k.is_changed = 'waiting', is_next and now or now + WAITING_MS, true
	return first
end

local function follow_up(f)
	local target, lane, due, bytes = f[1] - 1, f[2], f[4] > 0 and now + f[4] or 0, f[5]
	due = math.max(due, f[3])
	if target >= 0 then
		-- Not below the time: should the server fail over and lose the last of them, none of these numbers is given again.
		local before = redis.call('HGET', at .. 'sent', target)
		local number = math.max((whole(before) or 0) + 1, clock[1] * 1000000 + clock[2])
		if not before then
			redis.call('HSETNX', at .. 'sent', 'born', clock[1] .. clock[2])
		end
		redis.call('HSET', at .. 'sent', target, string.format('%.0f', number))
		redis.call('RPUSH', at .. 'outbox', cmsgpack.pack({ target, number, lane, due, bytes, 'task' }))
	elseif due > now then
		delay(lane, due, bytes)
	else
		append(lane, bytes, nil, last)
		lane_sizes[lane] = lane_sizes[lane] + 1
	end
end

local function note_get(seq)
	return has_notes and redis.call('HGET', notes, seq) or ''
end

local function note_remove(...)
	if has_notes then
		redis.call('HDEL', notes, ...)
	end
end

local function settle_done(o, seq)
	if redis.call('HDEL', flight, seq) == 0 then
		return false
	end
	local note = note_of_done(note_get(seq))
	note_remove(seq)
	done = done + 1
	if o[6] > 0 then
		reply_put(o[3], o[6], 1, o[11], o[14], '', note)
	elseif o[11] == 1 then
		result_put(o[3], o[4], o[5], o[14], note)
		results_put = results_put + 1
	end
	for _, f in ipairs(o[19]) do
		follow_up(f)
	end
	return true
end

-- A key waits for what its first task waits for: another one that is put behind it changes nothing.
local function divert(k, o, seq, due)
	local waits, reason = o[16], o[12] ~= '' and o[12] or 'more than its share'
	local is_debounce = o[21] == 1
	local is_first = not k or (k.state == 'waiting' and waits == '' and not is_debounce)
	if not is_first then
		local head = side_members(k, 1)[1]
		is_first = not head or seq < tonumber(side_field(head))
	end
	if waits ~= '' and is_first then
		return key_set(o[4], 'named', 0, reason, waits)
	elseif is_debounce and is_first then
		return key_set(o[4], 'waiting', due, reason)
	elseif k and k.state == 'waiting' then
		k.due = math.min(due, k.due)
	elseif is_first then
		return key_set(o[4], 'waiting', due, reason)
	end
	return k
end

-- Why a key waits after a RETRY: what the owner says, if anything, and the error.
local function retry_reason(o)
	if o[12] == '' or o[13] == '' then
		return o[12] .. o[13]
	end
	return o[12] .. ': ' .. o[13]
end

-- RETRY, HOLD, DIVERT: into the key's side queue, at its place.
local function settle_aside(o, seq, bytes)
	local kind, name, due = o[1], o[4], now + o[8]
	local k = key_get(name)
	redis.call('HDEL', flight, seq)
	if kind == HOLD then
		k = key_set(name, 'held', 0, o[13])
	elseif kind == RETRY and (not k or k.state ~= 'held') then
		k = key_set(name, 'parked', due, retry_reason(o))
	elseif not k or k.state == 'waiting' or k.state == 'named' then
		k = divert(k, o, seq, due)
	end
	side_put(k, seq, bytes)
end

-- Every outcome but START ends a start, so the mark goes.
local function note_after(o, seq)
	local kind = o[1]
	local n = note_read(note_get(seq))
	if kind == START then
		n.started, n.holder, n['until'] = epoch, o[17], o[18] > 0 and now + o[18] or 0
	elseif kind == CHECKPOINT then
		n.checkpoint = o[15]
	elseif kind == DIVERT then
		n.debounced = math.max(n.debounced, o[21] or 0)
		if o[7] > 0 then
			note_charge(n, o[7], o[13])
		end
	else
		note_clear_start(n)
		n.suspect = kind == INTERRUPTED and o[10] or 0
		note_charge(n, o[7], o[13])
	end
	local note = note_write(n)
	if note ~= '' then
		redis.call('HSET', notes, seq, note)
		has_notes = true
	else
		note_remove(seq)
	end
end

-- MERGE: those in o[20], of seq, id and reply, end as merged into this one.  All are read before the first write: one that
-- is not in flight makes that nothing happens.
local function settle_merge(o, seq, bytes)
	local merged, fields, ids, size = o[20], {}, {}, #bytes
	for i, m in ipairs(merged) do
		fields[i] = string.format('%d', m[1])
	end
	local tasks = redis.call('HMGET', flight, unpack(fields))
	for i = 1, #fields do
		if not tasks[i] then
			return false
		end
		bytes = envelope_merge(bytes, tasks[i], seq)
		size = size + #tasks[i]
	end
	moved = moved + size
	local n = note_read(note_get(seq))
	n.merged, n.mergedat = math.min(n.merged + #merged, NUMBERS.merged), now
	redis.call('HDEL', flight, unpack(fields))
	note_remove(unpack(fields))
	redis.call('HSET', flight, seq, bytes)
	redis.call('HSET', notes, seq, note_write(n))
	has_notes = true
	for i, m in ipairs(merged) do
		ids[i] = string.format('%s %.0f %s', m[2], now, o[3])
		-- The other may take longer to end than this one's outcome was to be kept.
		reply_put(m[2], m[3] > 0 and m[3] + MERGED_MS or 0, 3, 1, o[3], '', '')
	end
	redis.call('RPUSH', at .. 'merged', unpack(ids))
	redis.call('LTRIM', at .. 'merged', -MERGED_KEPT, -1)
	redis.call('HINCRBY', shard, 'merged', #merged)
	return true
end

local function settle(o)
	local kind, seq = o[1], o[2]
	if kind == DONE then
		return settle_done(o, seq)
	end
	local bytes = redis.call('HGET', flight, seq)
	if not bytes then
		return false
	end
	if kind == MERGE then
		return settle_merge(o, seq, bytes)
	end
	moved = moved + #bytes
	if kind == DEAD then
		local note = note_get(seq)
		redis.call('HDEL', flight, seq)
		note_remove(seq)
		dead_put({ id = o[3], handler = o[5], lane = math.floor(seq / LANE), reply_ms = o[6], bytes = bytes, note = note },
			o[12], o[13], o[7])
		return true
	end
	if kind == 9 then
		local n = note_read(note_get(seq))
		note_event(n, 'moved', ({ [0] = 'high', 'normal', 'low' })[o[8]])
		redis.call('HDEL', flight, seq)
		note_remove(seq)
		append(o[8], bytes, note_write(n), last)
		lane_sizes[o[8]], has_notes = lane_sizes[o[8]] + 1, true
		return true
	end
	note_after(o, seq)
	if kind == RETRY or kind == HOLD or kind == DIVERT then
		settle_aside(o, seq, bytes)
	end
	return true
end

local function refill(name, max)
	local k = max > 0 and key_get(name)
	if k and k.state == 'waiting' and not k.is_unreadable then
		side_take(k, max)
	end
end

-- Outcomes from the i-th on that are done and nothing else: gone in two commands, however many they are.  Tasks of one
-- key that follow each other are refilled at once.  Returns where it stopped.
local function settle_plain(i)
	local seqs, from = {}, i
	while outcomes[i] and outcomes[i][1] == DONE and outcomes[i][6] == 0 and outcomes[i][11] == 0 and #outcomes[i][19] == 0 do
		seqs[#seqs + 1] = string.format('%d', outcomes[i][2])
		i = i + 1
	end
	if #seqs == 0 then
		return i
	end
	local removed = redis.call('HDEL', flight, unpack(seqs))
	note_remove(unpack(seqs))
	done, gone = done + removed, gone + #seqs - removed
	local name, max = outcomes[from][4], 0
	for at_outcome = from, i - 1 do
		local o = outcomes[at_outcome]
		if o[4] ~= name then
			refill(name, max)
			name, max = o[4], 0
		end
		max = max + o[9]
	end
	refill(name, max)
	return i
end

local function outcomes_apply()
	local i = settle_plain(1)
	while outcomes[i] do
		local o = outcomes[i]
		if not settle(o) then
			gone = gone + 1
		end
		if o[1] == DONE or o[1] == DEAD or o[1] == MERGE or o[1] == 9 then
			refill(o[4], o[9])
		end
		i = settle_plain(i + 1)
	end
	if #ARGV >= first_seq then
		local removed = redis.call('HDEL', flight, unpack(ARGV, first_seq))
		note_remove(unpack(ARGV, first_seq))
		done, gone = done + removed, gone + #ARGV - first_seq + 1 - removed
	end
	if results_put > 0 then
		results_trim(2 * results_put, results_max, results_age)
	end
end
