-- What every script of a shard begins with.  KEYS: shard, high, normal, low, delayed, control; these ring (see README).
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

-- Nothing may be half done: whoever writes asks first whether all that it may touch is what it should be.
local function check_types(...)
	for _, name in ipairs({ ... }) do
		local is = redis.call('TYPE', at .. name).ok
		if is ~= 'none' and is ~= TYPES[name] then
			error({ err = 'WRONGTYPE ' .. at .. name .. ' is a ' .. is .. ', Quiver wants a ' .. TYPES[name] })
		end
	end
end

local function hex(number)
	return string.format('%016x', number)
end
