#!lua flags=allow-oom
-- advance: commits outcomes, renews the lease, claims more.
-- KEYS: see lib/shard.lua.
-- ARGV:
--   1 lease   2 call   3 ttl   4-6 want of high, normal and low   7 want_bytes   8 the longest envelope allowed
--   9 outcomes (msgpack: results_max, results_age, outcomes), or '' if all are plain DONE
--   10 the shard's field `claimed` as the caller knows it; '-': it does not know it
--   11 number of DONE tasks that are in lists   12 number of list nodes to sample for sizes   13 index of the first seq below
--   then seven arguments each for normal, high and low (high and low may be left out):
--     +0 number of done elements to trim from the list's head; if ARGV[10] is '-': the number of the last claimed element
--     +1 number of claimed elements that stay
--     +2 what `claimed` says of these after their number
--     +3 number of elements behind them that the caller reads with an LRANGE right after this call
--     +4 how many of these are known to be small
--     +5 size of an element above which one of them must be large
--     +6 the first 512 bytes of the last claimed element as the caller read them; '': none is claimed
--   then the seqs of plain DONE tasks that are in the in-flight hash.
-- The common case comes first and uses no function of the libraries, so that their definitions cost it nothing.
-- Returns: bits, now, left, gone, next_due, controls, troubles, small of high, normal and low, blocks.
--   bits: 1, 2, 4 more of each lane; 8 has_outbox; 16 has_keys; 32 refused; 64, 128 wanted; 256 keys are due whose lane had
--     no room; 512 the claimed tasks are in the lists
--   troubles: 0, or the number of tasks that were too long and are dead, and a line for each of them and each unreadable record
--   small: how many of a lane's next elements are known to be small; from 4096 on: read at most so many above that at once
--   blocks: tasks of consecutive seqs, each block as first seq, list of envelopes, list of notes ('': none has one); or, for
--     tasks that the LRANGE brings, as first seq, count, ''.  No list is packed into one string, because Lua hashes every
--     byte of a string that it makes.
-- Or 'FENCED'; 'ANEW': `claimed` differs from ARGV[10]; 'OTHER': the claimed elements have moved, so another program has
-- changed the list.
local shard, rings = KEYS[1], #KEYS > 3
local at = string.sub(shard, 1, -6)
local high, normal, low = at .. 'high', KEYS[rings and 3 or 2], at .. 'low'
local flight = at .. 'flight'
local fields = redis.call('HMGET', shard, 'lease', 'call', 'want', 'gone', 'done', 'normal', 'claimed')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
-- Any program may have written the stored numbers: check all that are used before anything changes.
local function counted(name, text)
	local number = tonumber(text)
	if not number or number < 0 or number > 281470681743360 or number % 1 ~= 0 then
		error({ err = string.format('BADVALUE %s: %s is "%s"; stop all hosts of the app, then quiver fsck --repair', KEYS[1],
			name, string.gsub(string.sub(tostring(text), 1, 64), '%c', '?')) })
	end
	return number
end
local call, last_call = tonumber(ARGV[2]), counted('call', fields[2])
if call ~= last_call + 1 and call ~= last_call then
	return 'FENCED'
end
-- Convert a number from its text only where it is needed: each conversion costs as much as twenty steps of a script.
local view, first_seq = ARGV[10], ARGV[13] == '35' and 35 or 21
if call > last_call and view ~= '-' and view ~= (fields[7] or '') then
	return 'ANEW'
end

-- The lanes that the common case looks at; nil if this call is not a common one.  Every call costs a microsecond, and each
-- read makes Redis remember all bell keys once more, so one EXISTS asks for everything that usually does not exist.
local first_lane, last_lane
local next_due, has_keys = -1, 0
local last = { [0] = 0, counted('normal', fields[6]), 0 }
local done_before = counted('done', fields[5])
if call > last_call and ARGV[9] == '' and view ~= '-' and not fields[3] and not fields[4] then
	local there = redis.call('EXISTS', at .. 'keys', at .. 'notes', at .. 'outbox', at .. 'delayed', at .. 'control',
		high, low)
	if first_seq == 35 then
		if there == 0 or redis.call('EXISTS', high, low) == there then
			first_lane, last_lane = 0, 2
		end
	elseif there == 0 then
		first_lane, last_lane = 1, 1
	elseif there == 1 and redis.call('EXISTS', at .. 'keys') == 1 and
		redis.pcall('LLEN', normal) == ARGV[14] + ARGV[15] then
		-- Keys wait, but no queued task could be theirs, as when a key with more than its share is worked off.  This is still a
		-- common call unless one of the keys is due.
		local clock = redis.call('TIME')
		local head = redis.call('ZRANGE', at .. 'due', 0, 0, 'WITHSCORES')
		if head[2] and tonumber(head[2]) < 9007199254740991 then
			next_due = math.max(0, tonumber(head[2]) - (clock[1] * 1000 + math.floor(clock[2] / 1000)))
		end
		has_keys = 1
		if next_due ~= 0 then
			first_lane, last_lane = 1, 1
		end
	end
end
if first_lane == 0 then
	local others = redis.call('HMGET', shard, 'high', 'low')
	last[0], last[2] = counted('high', others[1]), counted('low', others[2])
end

-- The common case: claimed tasks stay in their list, a claim only raises a count, and done tasks at the head are trimmed.
-- No task is read here.  It ends in `break`, with nothing changed, if a key has the wrong type, or if the next task is or
-- may be long.  Numbers go to Redis as text: it would print them with %.17g, which costs more than all the rest.  This is
-- not a function: one that uses so many variables of the script is created anew with each call, for some 5000 instructions.
repeat
	if not first_lane then
		break
	end
	local clock = redis.call('TIME')
	local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
	local format, is_odd, ranges, more, rest, room = string.format, false, '', 0, 256, nil
	local ttl = tonumber(ARGV[3])
	local reply = { 0, now, ttl, 0, next_due, 0, 0, 0, 0, 0 }
	local set = { 'call', ARGV[2], 'until', format('%d', now + ttl), 'ttl', ARGV[3] }
	local words = { '0', '0', '0' } -- of `claimed`
	for lane = first_lane, last_lane do
		local a = lane == 1 and 14 or lane == 0 and 21 or 28
		local list = lane == 1 and normal or lane == 0 and high or low
		local trim, kept = tonumber(ARGV[a]), tonumber(ARGV[a + 1])
		local length = redis.pcall('LLEN', list)
		local queued = type(length) == 'number' and length - trim - kept or -1
		local n, small = math.min(queued, tonumber(ARGV[a + 3]), rest), tonumber(ARGV[a + 4])
		is_odd = queued < 0 or (queued > 0 and n == 0 and rest > 0 and ARGV[4 + lane] ~= '0')
		-- If the last claimed element is in its place, so are all before it.
		if ARGV[a + 6] ~= '' and not is_odd then
			local bytes = redis.call('LINDEX', list, format('%d', trim + kept - 1))
			is_odd = bytes ~= ARGV[a + 6] and string.sub(bytes, 1, 512) ~= ARGV[a + 6]
		end
		if n > small and not is_odd then
			-- The size of the first nodes, scaled up to the whole list: never less than what is read, if that is small.
			local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', ARGV[12])
			if type(bytes) ~= 'number' then -- not allowed here
				n, small = math.min(n, 4), 4100
			else
				-- In a long list, as many elements count as small as make up 256 KiB.
				small = bytes <= 1048576 and queued or math.floor(262144 * length / bytes)
				small = (bytes > 16384 * length and 4096 + n or 0) + math.min(small, 2048)
				room = room or tonumber(ARGV[7])
				if bytes > room then
					n = math.min(n, math.floor(room * length / bytes))
					is_odd = n == 0 or bytes > 32768 * length or bytes > ARGV[a + 5] * length
				end
				room = room - n * bytes / length
			end
		end
		if is_odd then
			break
		end
		if n > 0 then
			local first, r = lane * 281474976710656 + last[lane] + 1, #reply
			reply[r + 1], reply[r + 2], reply[r + 3] = first, n, ''
			ranges = ranges .. format('%d %d ', first, n)
			set[#set + 1] = lane == 0 and 'high' or lane == 1 and 'normal' or 'low'
			set[#set + 1] = format('%d', last[lane] + n)
		end
		rest, more = rest - n, more + (queued > n and 2 ^ lane or 0)
		reply[8 + lane] = n < small and small - n or 0
		words[lane + 1] = format('%d%s', kept + n, ARGV[a + 2])
	end
	if is_odd then
		break
	end
	local removed, seqs = 0, #ARGV - first_seq + 1
	if seqs > 0 then
		removed = redis.pcall('HDEL', flight, unpack(ARGV, first_seq))
		if type(removed) ~= 'number' then
			break
		end
	end
	for lane = first_lane, last_lane do
		local trim = ARGV[lane == 1 and 14 or lane == 0 and 21 or 28]
		if trim ~= '0' then
			redis.call('LTRIM', lane == 1 and normal or lane == 0 and high or low, trim, '-1')
		end
	end
	local done, s = removed + ARGV[11], #set
	set[s + 1], set[s + 2], set[s + 3], set[s + 4] = 'last', ranges, 'claimed', words[1] .. ' ' .. words[2] .. ' ' .. words[3]
	if done > 0 then
		set[s + 5], set[s + 6] = 'done', format('%d', done_before + done)
	end
	redis.call('HSET', shard, unpack(set))
	-- The last read arms the bell for all keys that the script was given.
	if rings then
		redis.call('EXISTS', shard)
	end
	reply[1] = more + 16 * has_keys + 512
	reply[4] = seqs - removed
	return reply
until true

-- All other cases.  A function, because each function has room for 200 local variables, and the included files have many.
local want = { [0] = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]) }
local want_bytes, limit = tonumber(ARGV[7]), tonumber(ARGV[8])
local function uncommon()
if first_lane ~= 0 then
	local others = redis.call('HMGET', shard, 'high', 'low')
	last[0], last[2] = counted('high', others[1]), counted('low', others[2])
end
--include shard
--include look
--include lease
--include note
--include task
--include dead
--include log
--include claimed
--include key
--include results
--include marks
--include portion

local epoch = tonumber(string.match(ARGV[1], ' (%d+) '))
local want_record = want_read(fields[3], epoch)
local blocks, count = {}, 0 -- what is claimed: first seq, envelopes, notes, and so on
local ranges = {}
local put = {}              -- the same, for the in-flight table
local troubles = {}         -- lines about records that cannot be read, and tasks that are too long
local moved = 0             -- bytes that this call has moved from one place to another: a call is bounded by them
local long_count = 0        -- how many of them are such tasks

local function trouble(...)
	troubles[#troubles + 1] = string.format(...)
end

local function claim_add(seq, bytes, note)
	local n = #ranges
	if n > 0 and ranges[n][1] + ranges[n][2] == seq then
		ranges[n][2] = ranges[n][2] + 1
	else
		ranges[n + 1] = { seq, 1 }
		blocks[#blocks + 1] = seq
		blocks[#blocks + 1] = {}
		blocks[#blocks + 1] = {}
	end
	local tasks, their_notes = blocks[#blocks - 1], blocks[#blocks]
	tasks[#tasks + 1] = bytes
	their_notes[#their_notes + 1] = note or ''
	count = count + 1
end

-- How many elements of a list are known to be small, in the common case's terms.
local function small_next(lane)
	local length = redis.call('LLEN', lanes[lane])
	if length == 0 then
		return 0
	end
	local bytes = redis.pcall('MEMORY', 'USAGE', lanes[lane], 'SAMPLES', '128')
	if type(bytes) ~= 'number' then
		return 4100 -- not allowed here
	end
	-- For a long list the common case finds out by the element sizes that the caller has seen.
	return bytes <= PORTION_BYTES and math.min(length, 2048) or bytes <= 16384 * length and 0 or
		4096 + math.floor(262144 * length / bytes)
end

-- `waits` has the lanes of due keys that found no room.  These are claimed when their lane has room, so next_due ignores them.
local function answer(controls, gone, refused, till, waits)
	local due = look(next(waits) and now + 1)
	local bits = 8 * redis.call('EXISTS', at .. 'outbox') + 16 * redis.call('EXISTS', at .. 'keys') + (refused and 32 or 0) +
		64 * wanted(want_record) + (next(waits) and 256 or 0)
	for lane = 0, 2 do
		bits = bits + ((waits[lane] or due == 0 or redis.call('EXISTS', lanes[lane]) == 1) and 2 ^ lane or 0)
	end
	local reply = { bits, now, left_ms(till, ARGV[3]), gone, due, controls, #troubles > 0 and { long_count, troubles } or 0,
		small_next(0), small_next(1), small_next(2) }
	for i = 1, #blocks, 3 do
		reply[i + 10] = blocks[i]
		reply[i + 11] = blocks[i + 1]
		reply[i + 12] = blocks[i + 2]
	end
	return reply
end

-- Parses controls; false for one that cannot be read.
local function controls_read(list)
	local controls = {}
	for i, entry in ipairs(list) do
		controls[i] = control_read(entry) or false
	end
	return controls
end

local function controls_show(controls)
	local rows = {}
	for _, c in ipairs(controls) do
		if c then
			rows[#rows + 1] = { c[1], c[2], c[4], c[5], c[1] > 5 and c[3] or '' }
		end
	end
	return rows
end

local places = first_seq == 35 and { [0] = 21, 14, 28 } or { 14 }

-- Whether the claimed elements are in their places, as far as the caller knows; `claimed` comes from claimed_check().
local function claimed_stands(claimed)
	for lane, a in pairs(places) do
		local place = view == '-' and ARGV[a] - claimed[lane].base or ARGV[a] + ARGV[a + 1]
		if (view == '-' or view == (fields[7] or '')) and claimed_is_other(claimed, lane, place, ARGV[a + 6]) then
			return false
		end
	end
	return not (claimed[0].is_changed or claimed[1].is_changed or claimed[2].is_changed)
end

-- The answer to the last call was lost: returns the tasks that it claimed, which are in flight, again.  They leave the
-- lists, because the caller does not know them yet and could not check that they stay in place.
if call == last_call then
	local saved = redis.call('HMGET', shard, 'last', 'until', 'returned')
	check_types('high', 'normal', 'low', 'flight', 'notes', 'control', 'delayed', 'due')
	check_counts('high', 'normal', 'low')
	local claimed = claimed_check()
	if not claimed_stands(claimed) then
		return 'OTHER'
	end
	claimed_move(claimed)
	local looks = 256
	for first, n in string.gmatch(saved[1] or '', '(%d+) (%d+)') do
		first = whole(first) or 0
		n = math.min(whole(n) or 0, looks)
		looks = looks - n
		for seq = first, first + n - 1 do
			local bytes = seq_is_given(seq, last) and redis.call('HGET', flight, seq)
			if bytes then
				claim_add(seq, bytes, redis.call('HGET', notes, seq))
			end
		end
		if looks == 0 then
			break
		end
	end
	local returned = math.min(whole(saved[3]) or 0, 64)
	local list = returned > 0 and redis.call('LRANGE', control, 0, returned - 1) or {}
	return answer(controls_show(controls_read(list)), 0, false, saved[2], {})
end

local results_max, results_age, outcomes = 0, 0, {}
if ARGV[9] ~= '' then
	results_max, results_age, outcomes = unpack(cmsgpack.unpack(ARGV[9]))
end
local room, has_dead, has_results, has_follow_ups, has_merged = want[0] + want[1] + want[2], false, false, false, false
for _, o in ipairs(outcomes) do
	room = room + o[9]
	has_dead = has_dead or o[1] == 3
	has_results = has_results or o[11] == 1
	has_follow_ups = has_follow_ups or #o[19] > 0
	has_merged = has_merged or o[1] == 8
end
room = math.min(room, 256)

-- Counts a key's elements, which also proves that the key has the right type.
local function size(command, name)
	local count_or_error = redis.pcall(command, at .. name)
	if type(count_or_error) == 'table' then
		check_types(name)
	end
	return count_or_error
end
local lane_sizes = { [0] = size('LLEN', 'high'), size('LLEN', 'normal'), size('LLEN', 'low') }
local has_delayed, has_controls = size('ZCARD', 'delayed') > 0, size('LLEN', 'control') > 0
local has_notes = size('HLEN', 'notes') > 0
has_keys = size('HLEN', 'keys') > 0
for name, command in pairs({ flight = 'HLEN', parked = 'HLEN', due = 'ZCARD', side = 'ZCARD' }) do
	size(command, name)
end
if redis.call('EXISTS', at .. 'later', at .. 'parkedlanes', at .. 'named') > 0 then
	check_types('later', 'parkedlanes', 'named')
end
if (has_dead or has_controls or has_keys) and
	redis.call('EXISTS', at .. 'dead', at .. 'deadnumbers', at .. 'deadids', at .. 'deadgroups') > 0 then
	check_types('dead', 'deadnumbers', 'deadids', 'deadgroups')
end
check_counts(unpack(COUNTS))
local claimed = claimed_check(fields[7], last)
if not claimed_stands(claimed) then
	-- It is unknown which task is at which place.  Whoever acquires the shard again gets the tasks in flight.
	return 'OTHER'
end
for lane = 0, 2 do
	lane_sizes[lane] = lane_sizes[lane] - claimed[lane].count
end
if has_results then
	check_types('results', 'resultdata', 'leased', 'consumers')
end
if has_follow_ups then
	check_types('outbox', 'sent')
end
if has_merged then
	check_types('merged')
end

-- --- controls ---------------------------------------------------------------------------------------------------------

-- The list keeps the controls that the last call returned until this one, at its head; the first `applied` of them have been
-- applied already.
-- Reads new controls one by one: workers' reports may be long, and a call returns at most a MiB of them, but always one.
local function controls_next(from)
	local list, bytes = {}, 0
	for i = 0, 63 do
		local entry = redis.call('LINDEX', control, from + i)
		bytes = bytes + #(entry or '')
		if not entry or (i > 0 and bytes > 1048576) then
			break
		end
		list[i + 1] = entry
	end
	return list
end

local function controls_take()
	if not has_controls then
		return {}
	end
	local saved = redis.call('HMGET', shard, 'returned', 'applied')
	local returned, applied = math.min(whole(saved[1]) or 0, 64), whole(saved[2]) or 0
	local list = controls_read(controls_next(returned))
	if returned > 0 then
		redis.call('LTRIM', control, returned, -1)
		applied = math.max(0, applied - returned)
	end
	for i, c in ipairs(list) do
		if i > applied and c then
			control_apply(c[1], c[2], c[3])
		elseif not c then
			trouble('control: an entry cannot be read; it is passed over')
		end
	end
	-- A key that is no longer held and has no waiting tasks must be free before the outcomes are applied.
	keys_save()
	if returned > 0 or #list > 0 then
		redis.call('HSET', shard, 'returned', #list, 'applied', math.max(applied, #list))
	end
	return controls_show(list)
end

--include outcomes
--include claim

-- --- the call ---------------------------------------------------------------------------------------------------------


-- From here on all in-flight tasks are in the in-flight hash, except those that this call says are done.
for lane, a in pairs(view ~= '-' and places or {}) do
	redis.call('LTRIM', lanes[lane], ARGV[a], -1)
	claimed[lane] = { count = tonumber(ARGV[a + 1]), done = string.match(ARGV[a + 2], '^:(%x+):'), base = claimed[lane].base + ARGV[a] }
end
done, moved = done + ARGV[11], claimed_move(claimed)
local controls = controls_take()
outcomes_apply()
local refused = is_refused(want_record)
local till, waits = now + ARGV[3], {}
if refused then
	till = redis.call('HGET', shard, 'until')
else
	waits = claim()
end
keys_save()
if #put > 0 then
	redis.call('HSET', flight, unpack(put))
end
if fields[4] then
	marks_write(marks)
end
if fields[3] and not want_record then
	redis.call('HDEL', shard, 'want')
end
local remembered = {}
for i, range in ipairs(ranges) do
	remembered[i] = string.format('%.0f %.0f ', range[1], range[2])
end
-- As text, because Redis prints a number of Lua with %.17g.
redis.call('HSET', shard, 'call', ARGV[2], 'until', type(till) == 'number' and decimal(till) or till, 'ttl', ARGV[3], 'high',
	decimal(last[0]), 'normal', decimal(last[1]), 'low', decimal(last[2]), 'done', decimal(done_before + done), 'last',
	table.concat(remembered))
return answer(controls, gone, refused, till, waits)
end
return uncommon()
