-- What every script of a shard begins with.
--
-- The rule for all of them: what is read is read and checked before the first write.  Redis keeps what a script has written
-- before it fails, so nothing may fail after that: types by check_types(), numbers that are counted on by check_numbers(),
-- packed records by record_read(), which says nil of what it cannot read instead of failing.  Such a record stays where it
-- is, fsck names it, and the script goes on without it.  tests/e2e/test_redis_scripts.py runs every script against all of it.
--  KEYS: shard, high, normal, low, delayed, control; these ring (see README).
-- In a Cluster there is one more, which does not exist: see call.c.
-- All other keys of the shard have the same hash tag and are named from the first.
local shard, delayed, control = KEYS[1], KEYS[5], KEYS[6]
local lanes = { [0] = KEYS[2], KEYS[3], KEYS[4] }
local lane_names = { [0] = 'high', 'normal', 'low' }
local at = string.sub(shard, 1, -6)
local flight, notes = at .. 'flight', at .. 'notes'
local LANE = 281474976710656 -- 2^48: a seq is lane * LANE + number
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local TYPES = { shard = 'hash', high = 'list', normal = 'list', low = 'list', delayed = 'zset', control = 'list',
	flight = 'hash', notes = 'hash', keys = 'hash', due = 'zset', side = 'zset', parked = 'hash', later = 'hash',
	dead = 'hash', deadnumbers = 'zset', deadids = 'zset', results = 'zset', resultdata = 'hash', leased = 'zset',
	consumers = 'hash', outbox = 'list', sent = 'hash', taken = 'hash' }

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

-- The shard's own fields of these names, as numbers; 0 for what is not there.  HINCRBY fails on anything else.  A number
-- that is lost would be given again, and what has it already overwritten.
local NUMBERED = { last_delayed = 'later', last_dead = 'dead', last_result = 'resultdata', high = 'flight', normal = 'flight',
	low = 'flight' }
local function check_numbers(...)
	local names = { ... }
	local values = redis.call('HMGET', shard, ...)
	for i, text in ipairs(values) do
		if text and not (#text <= 16 and string.find(text, '^%d+$')) then
			error({ err = 'CORRUPT ' .. shard .. ': its field ' .. names[i] .. ' is no number: ' .. string.sub(text, 1, 64) })
		elseif not text and NUMBERED[names[i]] and redis.call('EXISTS', at .. NUMBERED[names[i]]) == 1 then
			error({ err = 'CORRUPT ' .. shard .. ': its field ' .. names[i] .. ' is lost, but there are entries that it numbers' })
		end
		values[i] = tonumber(text or 0)
	end
	return values
end

-- What is packed in `bytes`, if it begins with values of these types; else nil.
local function record_read(bytes, ...)
	local is_read, record = pcall(cmsgpack.unpack, bytes or '')
	if not is_read or type(record) ~= 'table' then
		return nil
	end
	for i, wanted_type in ipairs({ ... }) do
		if type(record[i]) ~= wanted_type then
			return nil
		end
	end
	return record
end

local function later_read(bytes)
	local task = record_read(bytes, 'number', 'string', 'string')
	return task and lanes[task[1]] and task
end

local function dead_read(bytes)
	local d = record_read(bytes, 'string', 'string', 'number', 'number', 'string', 'string', 'string')
	return d and lanes[d[3]] and d
end

local function hex(number)
	return string.format('%016x', number)
end
