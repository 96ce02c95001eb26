-- What must be true of a shard, part by part.  Whoever includes this says whether it `mends` what is not.
local part, cursor = tonumber(ARGV[1]), ARGV[2]
local SLICE, SLICE_BYTES = 500, 262144
local problems, tasks, mended = {}, 0, 0

-- `mend` makes it good, and `cure` says how; nil: that takes a person.
local function problem(cure, mend, ...)
	local line = string.format(...)
	if mends and mend then
		mend()
		mended = mended + 1
		line = line .. '; mended: ' .. cure
	end
	problems[#problems + 1] = line
end

local function same(what, a, b)
	if a ~= b then
		problem(nil, nil, '%s: %d and %d differ', what, a, b)
	end
end

-- How many at once: HSCAN reads values, too, which may be large.
local function slice_count(command, name)
	local bytes = command == 'HSCAN' and redis.pcall('MEMORY', 'USAGE', at .. name, 'SAMPLES', 64)
	if type(bytes) ~= 'number' then
		return command == 'HSCAN' and bytes and 1 or SLICE -- not allowed here; or it is not there, or has no values
	end
	return math.max(1, math.min(SLICE, math.floor(SLICE_BYTES * redis.call('HLEN', at .. name) / bytes)))
end

-- Pairs of a hash or sorted set, a slice at a time.
local function slice(command, name, see)
	local page = redis.call(command, at .. name, cursor, 'COUNT', slice_count(command, name))
	for i = 1, #page[2], 2 do
		see(page[2][i], page[2][i + 1])
	end
	return page[1] == '0' and '' or page[1]
end

local function drop(command, name, member)
	return function()
		redis.call(command, at .. name, member)
	end
end

local function add(name, score, member)
	return function()
		redis.call('ZADD', at .. name, score, member)
	end
end

-- The key's record as its queue says; a key that had none is due now.
local function recount(name)
	return function()
		local k = key_get(name)
		if not k or k.is_unreadable then
			k = key_set(name, 'parked', now, 'mended')
		end
		k.tasks, k.is_changed = side_count(name), true
	end
end

-- How a task that stands under a number which nobody gave is mended.
local function make_dead(name, field)
	return function()
		stray_bury(name, field)
	end
end

-- The highest number of a lane that some task has.
local function highest_seq(lane)
	local highest = 0
	for _, name in ipairs({ flight, parked }) do
		for _, field in ipairs(redis.call('HKEYS', name)) do
			local seq = whole(field)
			if seq and math.floor(seq / LANE) == lane and seq % LANE <= LANE - 4294967296 then
				highest = math.max(highest, seq % LANE)
			end
		end
	end
	return highest
end

local function highest_of(command, name, base)
	local highest = 0
	for _, member in ipairs(command == 'HKEYS' and redis.call(command, at .. name) or redis.call(command, at .. name, 0, -1)) do
		highest = math.max(highest, whole(tonumber(member, base)) or 0)
	end
	return highest
end

-- What a number of …shard is to be that cannot be read: none that was given may be given again.
local COUNTED_ANEW = {
	high = function() return highest_seq(0) end,
	normal = function() return highest_seq(1) end,
	low = function() return highest_seq(2) end,
	last_delayed = function() return highest_of('HKEYS', 'later', 16) end,
	last_dead = function() return highest_of('HKEYS', 'dead', 10) end,
	last_result = function() return highest_of('ZRANGE', 'results', 10) end,
	-- A call that still travels must not fit.
	call = function() return now end,
}

-- The shard's count has come as far as this number.
local counts = nil
local function counted(name, number, what)
	counts = counts or counts_read(COUNTS, function() end)
	if number and number <= COUNT_MAX and number > (counts[name] or 0) then
		problem('counted', function()
			redis.call('HSET', shard, name, string.format('%.0f', number))
			counts[name] = number
		end, '%s %.0f: %s is %.0f', what, number, name, counts[name] or 0)
	end
end

local parts = {}

-- What the shard says of itself can be read; first, since the rest is measured by it.
parts[1] = function()
	counts_read(COUNTS, function(name, text)
		local count = COUNTED_ANEW[name]
		problem('counted anew', function()
			redis.call('HSET', shard, name, string.format('%.0f', count and count() or 0))
		end, '%s: "%s" is no number', name, string.sub(text or 'lost', 1, 64))
	end)
	local f = redis.call('HMGET', shard, 'lease', 'gone')
	if f[1] and not lease_read(f[1]) then
		problem('it is free', function()
			redis.call('HSET', shard, 'lease', 'free 0 ')
		end, 'lease: "%s" cannot be read', string.sub(f[1], 1, 64))
	end
	if f[2] and not string.find(f[2], '^%d+ %d+ %d+$') then
		problem('forgotten', drop('HDEL', 'shard', 'gone'), 'gone: "%s" cannot be read', string.sub(f[2], 1, 64))
	end
	return ''
end

-- What the shard says of tasks that are claimed and stand in their lists is as the lists are.
parts[#parts + 1] = function()
	local text, last = redis.call('HGET', shard, 'claimed'), lasts()
	local claimed = claimed_parse(text, last)
	if not claimed then
		problem('they are queued', drop('HDEL', 'shard', 'claimed'), 'claimed: "%s" cannot be read', string.sub(text, 1, 64))
		return ''
	end
	claimed_compare(claimed, last)
	for lane = 0, 2 do
		local c = claimed[lane]
		local move = function()
			claimed_move(claimed)
		end
		if c.is_short then
			problem('what is there is queued', move, 'lane %s: tasks that were claimed are not there', lane_names[lane])
		elseif c.is_changed then
			problem('all are in flight', move, 'lane %s: something was put before what was claimed, or taken from it; which of it is done is not known',
				lane_names[lane])
		end
	end
	return ''
end

-- Every task of a side queue has its bytes, its key, and is nowhere else.
parts[#parts + 1] = function()
	local last, claimed = lasts(), claimed_read()
	return slice('ZSCAN', 'side', function(member)
		local name, seq = string.sub(member, 1, -18), tonumber(string.sub(member, -16), 16)
		if #member < 17 or not seq_is_given(seq, last) then
			problem('it is dead', function()
				redis.call('ZREM', side, member)
				stray_bury('parked', side_field(member))
			end, 'key %s: a task waits under %s, which was never given', name, string.sub(member, -16))
		elseif flight_get(claimed, seq) then
			problem('it stays in flight', function()
				redis.call('ZREM', side, member)
				redis.call('HDEL', parked, seq)
			end, 'task %.0f is both in flight and parked', seq)
		elseif redis.call('HEXISTS', parked, seq) == 0 then
			problem('its place was dropped', drop('ZREM', 'side', member),
				'key %s: task %.0f waits, but is not there', name, seq)
		elseif redis.call('HEXISTS', keys, name) == 0 then
			problem('the key waits, and is due', recount(name), 'key %s: tasks wait for it, but it is free', name)
		end
	end)
end

-- The bytes of a task that waits have a place in their key's queue.
parts[#parts + 1] = function()
	local last = lasts()
	return slice('HSCAN', 'parked', function(field, bytes)
		local seq = seq_of(field, last)
		local name = seq and task_key(bytes, seq)
		if not seq then
			problem('it is dead', make_dead('parked', field), 'parked: %s was never given', field)
		elseif not redis.call('ZSCORE', side, name .. '\0' .. hex(seq)) then
			problem('it has its place by number', function()
				redis.call('ZADD', side, 0, name .. '\0' .. hex(seq))
				recount(name)()
			end, 'key %s: task %s is parked, but in no queue', name, field)
		elseif rare.is(seq) and redis.call('ZSCORE', rare.key, field) ~= field then
			problem('counted', add('parkedlanes', seq, field), 'task %s is parked, but not counted in its lane', field)
		end
	end)
end

-- What is counted in its lane is there, and of that lane.
parts[#parts + 1] = function()
	return slice('ZSCAN', 'parkedlanes', function(field)
		local seq = whole(field)
		if not seq or not rare.is(seq) or redis.call('HEXISTS', parked, field) == 0 then
			problem('forgotten', drop('ZREM', 'parkedlanes', field), 'task %s is counted as parked in its lane, but is not', field)
		end
	end)
end

-- Every key counts its tasks rightly and waits for something.
parts[#parts + 1] = function()
	return slice('HSCAN', 'keys', function(name)
		local k = key_get(name)
		if k.is_unreadable then
			problem('it is due now', recount(name), 'key %s: its record cannot be read', name)
			return
		end
		local count = side_count(name)
		if k.tasks ~= count then
			problem('counted', recount(name), 'key %s: tasks: %d and %d differ', name, k.tasks, count)
		end
		local score = redis.call('ZSCORE', due_keys, name)
		local due = (k.state == 'held' or k.state == 'named') and math.huge or k.due
		if not score or tonumber(score) ~= due then
			problem('queued for then', recount(name), 'key %s: due at %s, queued for %s', name, tostring(due), tostring(score))
		end
		if k.place and not redis.call('ZSCORE', named, k.place) then
			problem('it is found there', recount(name), 'key %s: waits for %s, but is not found there', name, k.waits)
		end
		if count == 0 and k.state ~= 'held' then
			problem('it is free', recount(name), 'key %s: waits for nothing', name)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'due', function(name)
		if redis.call('HEXISTS', keys, name) == 0 then
			problem('dropped', drop('ZREM', 'due', name), 'key %s: is due, but free', name)
		end
	end)
end

-- Who is found by a name waits for it.
parts[#parts + 1] = function()
	return slice('ZSCAN', 'named', function(member)
		local name = string.match(member, '^[!-~]+%z%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x%x(.+)$')
		local k = name and key_get(name)
		if not k or k.place ~= member then
			problem('dropped', drop('ZREM', 'named', member), 'key %s: does not wait for %s', name or '?',
				string.match(member, '^[!-~]*'))
		end
	end)
end

-- No note without its task: in flight, parked, or still queued.
parts[#parts + 1] = function()
	local claimed = claimed_read()
	return slice('HSCAN', 'notes', function(field)
		local seq = tonumber(field)
		local lane = seq and math.floor(seq / LANE)
		local place = seq and lanes[lane] and seq % LANE - claimed[lane].base
		local is_queued = place and place > 0 and place <= redis.call('LLEN', lanes[lane])
		if not is_queued and redis.call('HEXISTS', flight, field) == 0 and redis.call('HEXISTS', parked, field) == 0 then
			problem('dropped', drop('HDEL', 'notes', field), 'a note for task %s, which is not there', field)
		end
	end)
end

-- What is in flight was claimed.
parts[#parts + 1] = function()
	local last = lasts()
	return slice('HSCAN', 'flight', function(field)
		if not seq_of(field, last) then
			problem('it is dead', make_dead('flight', field), 'in flight: %s was never claimed', field)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'delayed', function(member)
		if redis.call('HEXISTS', at .. 'later', member) == 0 then
			problem('dropped', drop('ZREM', 'delayed', member), 'delayed %s is not there', member)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('HSCAN', 'later', function(member, record)
		if not later_read(record) then
			problem(nil, nil, 'delayed %s: its record cannot be read', member)
		elseif not redis.call('ZSCORE', delayed, member) then
			problem('it is due now', add('delayed', now, member), 'delayed %s waits for no time', member)
		end
		counted('last_delayed', whole(tonumber(member, 16)), 'delayed')
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'deadids', function(member)
		if redis.call('HEXISTS', at .. 'dead', tonumber(string.sub(member, -16), 16) or -1) == 0 then
			problem('dropped', drop('ZREM', 'deadids', member), 'dead %s is not there', string.sub(member, 1, -18))
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'deadnumbers', function(number, score)
		if redis.call('HEXISTS', at .. 'dead', number) == 0 then
			problem('dropped', drop('ZREM', 'deadnumbers', number), 'dead number %s is not there', number)
		elseif whole(number) and whole(number) ~= tonumber(score) then
			problem('at its place', add('deadnumbers', number, number), 'dead number %s stands at %s', number, score)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('HSCAN', 'dead', function(number, record)
		local fields = dead_read(record)
		if not fields or not lanes[fields[3]] or not whole(number) then
			problem(nil, nil, 'dead number %s cannot be read', number)
			return
		end
		counted('last_dead', whole(number), 'dead')
		local member = fields[1] .. '\0' .. hex(whole(number))
		if not redis.call('ZSCORE', at .. 'deadids', member) then
			problem('added', add('deadids', 0, member), 'dead %s is not found by its id', fields[1])
		end
		if not redis.call('ZSCORE', at .. 'deadnumbers', number) then
			problem('added', add('deadnumbers', number, number), 'dead %s is not listed', fields[1])
		end
		if (whole(fields[8]) or 0) > 0 and redis.call('EXISTS', at .. 'long.' .. number) == 0 then
			problem(nil, nil, 'dead %s is too long, and its bytes are not there', fields[1])
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'leased', function(number)
		if not redis.call('ZSCORE', at .. 'results', number) then
			problem('dropped', function()
				redis.call('ZREM', at .. 'leased', number)
				redis.call('HDEL', at .. 'consumers', number)
			end, 'result %s is held, but not there', number)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'results', function(number)
		if redis.call('HEXISTS', at .. 'resultdata', number) == 0 then
			problem('dropped', drop('ZREM', 'results', number), 'result %s is not there', number)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('HSCAN', 'resultdata', function(number)
		if whole(number) and not redis.call('ZSCORE', at .. 'results', number) then
			problem('listed', add('results', number, number), 'result %s is not listed', number)
		end
		counted('last_result', whole(number), 'result')
	end)
end

-- What was taken from each source can be read: else nobody knows what would be taken twice.
parts[#parts + 1] = function()
	return slice('HSCAN', 'sources', function(name, record)
		if not string.find(record, '^%d+ %d+$') then
			problem(nil, nil, 'source %s: the highest number taken is "%s"', name, string.sub(record, 1, 64))
		end
	end)
end

-- Entries of other shards that wait for a Quiver that knows their kind.
parts[#parts + 1] = function()
	for _, record in ipairs(redis.call('LRANGE', at .. 'kept', 0, 1023)) do
		local entry, source = kept_read(record)
		if entry then
			problem(nil, nil, 'an entry of kind %s, from %s, waits for a Quiver that knows it', entry[6], source)
		else
			problem(nil, nil, 'an entry that was kept cannot be read')
		end
	end
	return ''
end

-- A room's entries, counted: how many, how many bytes, and the last number.
local function room_count(stream)
	local entries, bytes, from, last = 0, 0, '-', 0
	while true do
		local some = redis.call('XRANGE', stream, from, '+', 'COUNT', '16')
		for _, entry in ipairs(some) do
			entries, bytes, from = entries + 1, bytes + #(entry[2][2] or ''), '(' .. entry[1]
			last = digits_read(string.match(entry[1], '^(%d+)')) or last
		end
		if #some < 16 then
			return entries, bytes, last
		end
	end
end

-- Every room's record can be read, and counts its entries.
parts[#parts + 1] = function()
	return slice('HSCAN', 'rooms', function(name, record)
		local stream, room = at .. 'room:' .. name, room_read(record)
		local is = redis.call('TYPE', stream).ok
		if is ~= 'none' and is ~= 'stream' then
			problem(nil, nil, 'room %s: %s is a %s', name, stream, is)
			return
		end
		local tail = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', '1')[1]
		local last = tail and digits_read(string.match(tail[1], '^(%d+)')) or 0
		if room and redis.call('XLEN', stream) == room.entries and room.last >= last then
			return
		end
		problem('counted anew', function()
			local entries, bytes, highest = room_count(stream)
			room = room or { last = 0, entries_max = 10000, bytes_max = 67108864, age = 604800000 }
			room.last, room.entries, room.bytes = math.max(room.last, highest, entries), entries, bytes
			redis.call('HSET', at .. 'rooms', name, room_write(room))
		end, 'room %s: its record is "%s", it has %d entries up to %.0f', name, string.sub(record, 1, 64),
			redis.call('XLEN', stream), last)
	end)
end

-- What is remembered of submits can be read and ends some time.
parts[#parts + 1] = function()
	return slice('HSCAN', 'idempotent', function(name, record)
		local till = idempotent_read(record)
		local score = redis.call('ZSCORE', idempotent_ends, name)
		if not till then
			problem('forgotten', function()
				idempotent_remove(name)
			end, 'idempotency key %s: what is remembered cannot be read', name)
		elseif tonumber(score or -1) ~= till then
			problem('queued for then', add('idempotentends', till, name), 'idempotency key %s: ends at %.0f, queued for %s', name,
				till, tostring(score))
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'idempotentends', function(name)
		if redis.call('HEXISTS', idempotent, name) == 0 then
			problem('dropped', drop('ZREM', 'idempotentends', name), 'idempotency key %s: ends, but is not there', name)
		end
	end)
end

-- Schedules can be read, and those that fire are queued for their next time.
parts[#parts + 1] = function()
	return slice('HSCAN', 'schedules', function(name, record)
		local s = schedule_unpack(record)
		local score = redis.call('ZSCORE', scheduled, name)
		local fires = s and s[1] == ACTIVE and s[3] > 0 and s[3] or nil
		if not s then
			problem(nil, nil, 'schedule %s: its record cannot be read; delete it: HDEL %s %s', name, schedules, name)
		elseif fires and tonumber(score or -1) ~= fires then
			problem('queued for then', add('scheduled', string.format('%.0f', fires), name),
				'schedule %s: fires at %.0f, queued for %s', name, fires, tostring(score))
		elseif not fires and score then
			problem('dropped', drop('ZREM', 'scheduled', name), 'schedule %s: does not fire, but is queued', name)
		end
	end)
end

parts[#parts + 1] = function()
	return slice('ZSCAN', 'scheduled', function(name)
		if redis.call('HEXISTS', schedules, name) == 0 then
			problem('dropped', drop('ZREM', 'scheduled', name), 'schedule %s: is queued, but is not there', name)
		end
	end)
end

-- What is remembered of merged tasks can be read.
parts[#parts + 1] = function()
	for i, entry in ipairs(redis.call('LRANGE', at .. 'merged', 0, -1)) do
		local id, when, into = string.match(entry, '^(%S+) (%d+) (%S+)$')
		if not id or #id > 64 or #into > 64 or not whole(when) then
			problem('forgotten', function()
				redis.call('LREM', at .. 'merged', 1, entry)
			end, 'merged task %d: what is remembered of it cannot be read', i)
		end
	end
	return ''
end

-- Sizes that must be equal at any moment; last, so that of what was mended nothing is left to say.
parts[#parts + 1] = function()
	local marks, claimed = marks_read(redis.call('HGET', shard, 'gone')), claimed_read()
	for lane = 0, 2 do
		local length = redis.call('LLEN', lanes[lane])
		tasks = tasks + length - marks[lane] - claimed[lane].count
		if marks[lane] > length then
			problem('forgotten', drop('HDEL', 'shard', 'gone'), 'lane %s: %d marks in %d entries', lane_names[lane], marks[lane],
				length)
		end
	end
	tasks = tasks + #claimed_seqs(claimed) + redis.call('HLEN', flight) + redis.call('HLEN', parked) + redis.call('HLEN', at .. 'later')
		+ redis.call('HLEN', at .. 'dead')
	same('delayed, later', redis.call('ZCARD', delayed), redis.call('HLEN', at .. 'later'))
	same('side, parked', redis.call('ZCARD', side), redis.call('HLEN', parked))
	same('keys, due', redis.call('HLEN', keys), redis.call('ZCARD', due_keys))
	same('dead, deadnumbers', redis.call('HLEN', at .. 'dead'), redis.call('ZCARD', at .. 'deadnumbers'))
	same('dead, deadids', redis.call('HLEN', at .. 'dead'), redis.call('ZCARD', at .. 'deadids'))
	local grouped, all = 0, redis.call('HLEN', at .. 'dead')
	for _, count in ipairs(redis.call('HVALS', at .. 'deadgroups')) do
		grouped = grouped + (whole(count) or 0)
	end
	if grouped ~= all then
		problem('they are one group now', function()
			redis.call('DEL', at .. 'deadgroups')
			if all > 0 then
				redis.call('HSET', at .. 'deadgroups', '', all)
			end
		end, 'dead, deadgroups: %d and %d differ', all, grouped)
	end
	same('results, resultdata', redis.call('ZCARD', at .. 'results'), redis.call('HLEN', at .. 'resultdata'))
	same('leased, consumers', redis.call('ZCARD', at .. 'leased'), redis.call('HLEN', at .. 'consumers'))
	local f = redis.call('HMGET', shard, 'returned', 'applied')
	local returned, applied = whole(f[1] or '0') or -1, whole(f[2] or '0') or -1
	if returned < 0 or returned > applied or applied > redis.call('LLEN', control) then
		problem('they are given once more', function()
			redis.call('HSET', shard, 'returned', 0, 'applied', 0)
		end, 'controls: %d returned, %d applied, %d there', returned, applied, redis.call('LLEN', control))
	end
	return ''
end

local function prove()
	check_types('shard', 'high', 'normal', 'low', 'delayed', 'control', 'flight', 'notes', 'keys', 'due', 'named', 'side', 'parked', 'parkedlanes',
		'later', 'dead', 'deadnumbers', 'deadids', 'deadgroups', 'results', 'resultdata', 'leased', 'consumers', 'outbox', 'sent', 'sources', 'kept',
		'idempotent', 'idempotentends', 'rooms')
	local next_cursor = parts[part] and parts[part]() or ''
	return { next_cursor, tasks, problems, #parts, mended }
end
