#!lua flags=allow-oom
-- advance: commits outcomes, renews the lease, claims more.
-- ARGV: lease, call, ttl, want of each lane, want_bytes, the longest envelope allowed, outcomes (msgpack: results_max,
-- results_age, outcomes; or ''), seqs that are simply done.  The common case comes first and stands alone: what it does not
-- call it need not even define.
-- → bits (1, 2 and 4 more of each lane, 8 has_outbox, 16 has_keys, 32 refused, 64 and 128 wanted,
-- 256 keys are due whose lane had no room), now, left, gone, next_due,
-- controls, troubles, blocks.  Troubles are 0, or how many tasks were too long and are dead, and a line about each of them and about each
-- record that cannot be read.  A block is tasks of consecutive seqs: the first seq, a list of their envelopes, and of their
-- notes ('': none has one).  No list is packed into one string: Lua hashes every byte of a string that it makes.
--include portion
local shard, delayed, control = KEYS[1], KEYS[5], KEYS[6]
local at = string.sub(shard, 1, -6)
local flight = at .. 'flight'
local fields = redis.call('HMGET', shard, 'lease', 'call', 'want', 'gone', 'done', 'normal')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
-- What is stored may have been written by anybody: before anything changes, all numbers that are counted on are looked at.
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
local want = { [0] = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]) }
local want_bytes, limit = tonumber(ARGV[7]), tonumber(ARGV[8])

-- Which lanes to look at if nothing is out of the ordinary; none if something is.  Every call costs a microsecond, and
-- each that reads makes Redis remember all bell keys once more: everything that is usually not there is asked for at once.
local first_lane, last_lane
local next_due, has_keys = -1, 0
local last = { [0] = 0, counted('normal', fields[6]), 0 }
local done_before = counted('done', fields[5])
if call > last_call and ARGV[9] == '' and not fields[3] and not fields[4] then
	local there = redis.call('EXISTS', at .. 'keys', at .. 'notes', at .. 'outbox', delayed, control, KEYS[2], KEYS[4])
	if there == 0 then
		first_lane, last_lane = 1, 1
	elseif redis.call('EXISTS', KEYS[2], KEYS[4]) == there then
		first_lane, last_lane = 0, 2
	elseif there == 1 and redis.call('EXISTS', at .. 'keys') == 1 and redis.call('EXISTS', KEYS[3]) == 0 then
		-- Keys wait, and there is nothing to claim that could be theirs, as when a key with more than its share is worked
		-- off.  It is as always unless one of them is due.
		local clock = redis.call('TIME')
		local head = redis.call('ZRANGE', at .. 'due', 0, 0, 'WITHSCORES')
		if head[2] and tonumber(head[2]) < 9007199254740991 then
			next_due = math.max(0, tonumber(head[2]) - (clock[1] * 1000 + math.floor(clock[2] / 1000)))
		end
		has_keys = 1
		if next_due ~= 0 then
			first_lane, last_lane = 1, 0
		end
	end
end
if first_lane ~= 1 then
	local others = redis.call('HMGET', shard, 'high', 'low')
	last[0], last[2] = counted('high', others[1]), counted('low', others[2])
end

local function is_countable(command, key)
	return type(redis.pcall(command, key)) == 'number'
end

-- The common case.  It ends in `break`, having changed nothing, if a key is not what it should be, or if what is or may be
-- long comes first.  In one lane that is found out by trying: nothing can be taken from what is no list, and what was taken
-- goes back if flight is no hash.  Where more than one list is taken from, or one more than once, all are looked at first.
-- Numbers go to Redis as text: it would print them with %.17g, which costs more than all the rest.  This is no function:
-- one that uses so many variables of the script is made anew with each call, for some 5000 instructions of the server.
repeat
	local is_checked = last_lane == 2
	if not first_lane or (is_checked and not (is_countable('HLEN', flight) and is_countable('LLEN', KEYS[2]) and
		is_countable('LLEN', KEYS[3]) and is_countable('LLEN', KEYS[4]))) then
		break
	end
	local clock = redis.call('TIME')
	local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
	local reply = { 0, now, tonumber(ARGV[3]), 0, next_due, 0, 0 }
	local count, removed = #ARGV - 9, 0
	local put, p, bytes, ranges = {}, 0, 0, ''
	local is_odd = false -- what comes next is not for the common case
	local format = string.format
	local digits = { '0', '1', '2', '3', '4', '5', '6', '7', '8', '9' }
	local set = { 'call', ARGV[2], 'until', format('%d', now + ARGV[3]), 'ttl', ARGV[3] }
	for lane = first_lane, last_lane do
		local list, seq, all, is_more = KEYS[lane + 2], lane * 281474976710656 + last[lane], nil, true
		local first, rest = seq + 1, math.min(want[lane], 256 - p / 2)
		local tens = first < 10 and '' or format('%d', first / 10)
		while rest > 0 and is_more and (bytes < want_bytes or p == 0) do
			local asked, is_large = portion(list, rest < 8 and 8 or rest)
			asked = asked < rest and asked or rest
			is_more = is_large and asked < rest
			is_odd = (is_large and asked == 1 and rest > 1) or (is_more and not is_checked and not is_countable('HLEN', flight))
			if is_odd then
				break
			end
			is_checked = is_checked or is_more
			local some, n = redis.pcall('LPOP', list, format('%d', asked)) or {}, 0
			if some.err then
				is_odd = true
				break
			end
			local got = #some
			for i = 1, got do
				local task = some[i]
				local size = #task
				if size > limit or (bytes >= want_bytes and p > 0) then
					is_odd = size > limit
					break
				end
				-- Ten tasks share all digits but the last: to format each number costs several times as much.
				seq, n = seq + 1, i
				local digit = seq % 10
				if digit == 0 then
					tens = format('%d', seq / 10)
				end
				put[p + 1] = tens .. digits[digit + 1]
				put[p + 2] = task
				bytes, p = bytes + size, p + 2
			end
			is_more = is_more and n == asked
			for i = got, n + 1, -1 do
				redis.call('LPUSH', list, some[i])
				some[i] = nil
			end
			rest = rest - n
			if not all then
				all = some
			else
				for i = 1, n do
					all[#all + 1] = some[i]
				end
			end
		end
		if seq >= first then
			ranges = ranges .. format('%d %d ', first, seq - first + 1)
			set[#set + 1] = lane == 0 and 'high' or lane == 1 and 'normal' or 'low'
			set[#set + 1] = format('%d', last[lane] + seq - first + 1)
			local n = #reply
			reply[n + 1], reply[n + 2], reply[n + 3] = first, all, ''
		end
		if is_odd then
			break
		end
	end
	if is_odd and p == 0 then
		break
	end
	if count > 0 then
		removed = redis.pcall('HDEL', flight, unpack(ARGV, 10))
	end
	if type(removed) ~= 'number' or (p > 0 and type(redis.pcall('HSET', flight, unpack(put))) ~= 'number') then
		for i = p, 2, -2 do
			redis.call('LPUSH', KEYS[3], put[i])
		end
		break
	end
	local n = #set
	set[n + 1], set[n + 2] = 'last', ranges
	if removed > 0 then
		set[n + 3], set[n + 4] = 'done', format('%d', done_before + removed)
	end
	redis.call('HSET', shard, unpack(set))
	-- The last read, which rings: of what we have written.  The rest was read before, and is not there.
	local more
	if last_lane == 2 then
		redis.call('EXISTS', shard)
		more = redis.call('EXISTS', KEYS[2]) + 2 * redis.call('EXISTS', KEYS[3]) + 4 * redis.call('EXISTS', KEYS[4])
	else
		more = 2 * (redis.call('EXISTS', shard, KEYS[3]) - 1)
	end
	reply[1] = more + 16 * has_keys
	reply[4] = count - removed
	return reply
until true
--include shard
--include look
--include lease
--include note
--include task
--include dead
--include log
--include key
--include results
--include marks

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

-- `waits` has the lanes of keys that are due and had no room: they come when their lane has some, so the next time is that
-- of others.
local function answer(controls, gone, refused, till, waits)
	local due = look(next(waits) and now + 1)
	local bits = 8 * redis.call('EXISTS', at .. 'outbox') + 16 * redis.call('EXISTS', at .. 'keys') + (refused and 32 or 0) +
		64 * wanted(want_record) + (next(waits) and 256 or 0)
	for lane = 0, 2 do
		bits = bits + ((waits[lane] or due == 0 or redis.call('EXISTS', lanes[lane]) == 1) and 2 ^ lane or 0)
	end
	local reply = { bits, now, left_ms(till, ARGV[3]), gone, due, controls, #troubles > 0 and { long_count, troubles } or 0 }
	for i = 1, #blocks, 3 do
		reply[i + 7] = blocks[i]
		reply[i + 8] = blocks[i + 1]
		reply[i + 9] = blocks[i + 2]
	end
	return reply
end

-- What was asked for, as far as it can be read; false for what cannot.
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
			rows[#rows + 1] = { c[1], c[2], c[4], c[5] }
		end
	end
	return rows
end

-- The answer to the last call was lost: what it claimed is in flight and is returned again.
if call == last_call then
	local saved = redis.call('HMGET', shard, 'last', 'until', 'returned')
	check_types('flight', 'notes', 'control')
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
local room, has_dead, has_results, has_follow_ups = want[0] + want[1] + want[2], false, false, false
for _, o in ipairs(outcomes) do
	room = room + o[9]
	has_dead = has_dead or o[1] == 3
	has_results = has_results or o[11] == 1
	has_follow_ups = has_follow_ups or #o[19] > 0
end
room = math.min(room, 256)

-- How much there is of everything; that it can be counted shows that it is of the right type.
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
for name, command in pairs({ flight = 'HLEN', later = 'HLEN', parked = 'HLEN', due = 'ZCARD', named = 'ZCARD', side = 'ZCARD' }) do
	size(command, name)
end
if has_dead or has_controls or has_keys then
	check_types('dead', 'deadnumbers', 'deadids', 'deadgroups')
end
check_counts(unpack(COUNTS))
if has_results then
	check_types('results', 'resultdata', 'leased', 'consumers')
end
if has_follow_ups then
	check_types('outbox', 'sent')
end

-- --- controls ---------------------------------------------------------------------------------------------------------

-- The list keeps what the last call returned until this one, at its head; `applied` of them, from the head, have done
-- their work already.
local function controls_take()
	if not has_controls then
		return {}
	end
	local saved = redis.call('HMGET', shard, 'returned', 'applied')
	local returned, applied = math.min(whole(saved[1]) or 0, 64), whole(saved[2]) or 0
	local list = controls_read(redis.call('LRANGE', control, returned, returned + 63))
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
	if returned > 0 or #list > 0 then
		redis.call('HSET', shard, 'returned', #list, 'applied', math.max(applied, #list))
	end
	return controls_show(list)
end

--include outcomes
--include claim

-- --- the call ---------------------------------------------------------------------------------------------------------

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
redis.call('HSET', shard, 'call', call, 'until', till, 'ttl', ARGV[3], 'high', last[0], 'normal', last[1], 'low', last[2],
	'done', done_before + done, 'last', table.concat(remembered))
return answer(controls, gone, refused, till, waits)
