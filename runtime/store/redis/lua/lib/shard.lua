-- What every script of a shard begins with.
--
-- The rule for all of them: what is read is read and checked before the first write.  Redis keeps what a script has written
-- before it fails, so nothing may fail after that: types by check_types(), numbers that are counted on by check_counts(),
-- packed records by record_read(), which says nil of what it cannot read instead of failing.  Such a record stays where it
-- is, fsck names it, and the script goes on without it.  tests/e2e/store/test_redis_scripts.py runs every script against all of it.
--
-- KEYS: shard, high, normal, low, delayed, control; these ring (see README).  Of `advance` only shard and normal if its
-- caller needs no ring.  In a Cluster there is one more, which does not exist: see call.c.
-- All keys of the shard have the same hash tag and are named from the first.
local shard = KEYS[1]
local lane_names = { [0] = 'high', 'normal', 'low' }
local at = string.sub(shard, 1, -6)
local lanes = { [0] = at .. 'high', at .. 'normal', at .. 'low' }
local delayed, control = at .. 'delayed', at .. 'control'
local flight, notes = at .. 'flight', at .. 'notes'
local LANE = 281474976710656 -- 2^48: a seq is lane * LANE + number
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local TYPES = { shard = 'hash', high = 'list', normal = 'list', low = 'list', delayed = 'zset', control = 'list',
	flight = 'hash', notes = 'hash', keys = 'hash', due = 'zset', named = 'zset', side = 'zset', parked = 'hash', parkedlanes = 'zset', later = 'hash',
	dead = 'hash', deadnumbers = 'zset', deadids = 'zset', deadgroups = 'hash', results = 'zset', resultdata = 'hash', leased = 'zset',
	consumers = 'hash', merged = 'list', outbox = 'list', sent = 'hash', sources = 'hash', kept = 'list',
	idempotent = 'hash', idempotentends = 'zset', rooms = 'hash', schedules = 'hash', scheduled = 'zset' }

-- What is wrong with the first of these keys that is of another type than it should be; nil: nothing.
local function wrong_type(...)
	for _, name in ipairs({ ... }) do
		local is = redis.call('TYPE', at .. name).ok
		if is ~= 'none' and is ~= TYPES[name] then
			return at .. name .. ' is a ' .. is .. ', Quiver wants a ' .. TYPES[name]
		end
	end
end

-- Nothing may be half done: whoever writes asks first whether all that it may touch is what it should be.
local function check_types(...)
	local wrong = wrong_type(...)
	if wrong then
		error({ err = 'WRONGTYPE ' .. wrong })
	end
end

local function hex(number)
	return string.format('%016x', number)
end

-- What is stored may have been written by anybody.  A whole number up to 2^53 - 1, in digits alone; else nil.
local function whole(text)
	local number = text
	if type(text) == 'string' then
		number = string.find(text, '^%d+$') and tonumber(text)
	end
	return number and number >= 0 and number <= 9007199254740991 and number or nil
end

-- `value` is false if it is lost.
local function bad_value(name, value)
	local is = value and string.gsub(string.sub(value, 1, 64), '%c', '?')
	error({ err = string.format('BADVALUE %s: %s is %s; stop all hosts of the app, then quiver fsck --repair', shard, name,
		is and '"' .. is .. '"' or 'lost, though tasks have numbers of it') })
end

-- The numbers that scripts count on.
local COUNTS = { 'high', 'normal', 'low', 'call', 'done', 'dropped', 'results_dropped', 'last_delayed', 'last_dead',
	'last_result', 'outbox_base', 'merged' }
-- A lane's numbers are 48 bits of a seq, and there must be room for more; the others may grow as well.
local COUNT_MAX, LANE_MAX = 9007194959773695, LANE - 4294967296

-- By name; of one that is no number `see` is told, as of one with leading zeros, on which HINCRBY fails.  One that is not
-- there is 0, but a lane's is lost if something is in flight: it is there since the first one acquired the shard.
local function counts_read(names, see)
	local counts = {}
	for i, text in ipairs(redis.call('HMGET', shard, unpack(names))) do
		local name = names[i]
		local is_lane = name == 'high' or name == 'normal' or name == 'low'
		local number = tonumber(text or '0') or -1
		counts[name] = number
		-- As a number it is written in one way only, which no pattern has to find out.
		if not (number >= 0 and number <= (is_lane and LANE_MAX or COUNT_MAX)) or (text and string.format('%d', number) ~= text) or
			(is_lane and not text and redis.call('HEXISTS', shard, 'lease') + redis.call('EXISTS', flight) == 2) then
			counts[name] = whole(text or '0')
			see(name, text)
		end
	end
	return counts
end

-- Nothing may be half done: whoever counts asks first whether it can.
local function check_counts(...)
	return counts_read({ ... }, bad_value)
end

-- A msgpack record: its values, if there are as many as types and each is of its type; else nil.
local function record_read(packed, ...)
	local is_read, values = pcall(cmsgpack.unpack, packed)
	if not is_read or type(values) ~= 'table' then
		return nil
	end
	for i, wanted in ipairs({ ... }) do
		local value = values[i]
		if type(value) ~= wanted or (wanted == 'number' and not (value >= 0 and value <= 9007199254740991 and value % 1 == 0)) then
			return nil
		end
	end
	return values
end

-- The next number of a kind, and its record under it.  A count that somebody has put back gives numbers again that are
-- taken: nothing is overwritten, and it goes on behind the last that is there.
local function record_add(count, name, base, format, packed)
	local number = redis.call('HINCRBY', shard, count, 1)
	if redis.call('HSETNX', at .. name, format(number), packed) == 0 then
		for _, field in ipairs(redis.call('HKEYS', at .. name)) do
			number = math.max(number, whole(tonumber(field, base)) or 0)
		end
		number = number + 1
		redis.call('HSET', shard, count, string.format('%.0f', number))
		redis.call('HSET', at .. name, format(number), packed)
	end
	return number
end

local function decimal(number)
	return string.format('%.0f', number)
end

-- As delay() wrote it: lane, envelope, note.
local function later_read(packed)
	local task = record_read(packed, 'number', 'string', 'string')
	return task and lanes[task[1]] and task
end

-- As dead_put() wrote it: id, handler, lane, at, reason, envelope, note; how many bytes one has that is too long, else 0; how
-- many bytes of the last event's text are the first line of the error.
local function dead_read(packed)
	return record_read(packed, 'string', 'string', 'number', 'number', 'string', 'string', 'string')
end
