-- Schedules of a shard: …schedules has name → msgpack (state, version, next (0: none), last, last_seq, fired, skipped,
-- definition), …scheduled the names of those that fire, by their next time.
local schedules, scheduled = at .. 'schedules', at .. 'scheduled'
local ACTIVE, PAUSED, DELETED = 0, 1, 2

local function schedule_unpack(packed)
	local s = record_read(packed, 'number', 'number', 'number', 'number', 'number', 'number', 'number', 'string')
	return s and s[1] <= DELETED and s[2] >= 1 and #s[8] <= 4096 and s or nil
end

-- What is stored; nil: nothing, false: no Quiver wrote it.
local function schedule_get(name)
	local packed = redis.call('HGET', schedules, name)
	return packed and (schedule_unpack(packed) or false) or nil
end

local function schedule_put(name, s)
	redis.call('HSET', schedules, name, cmsgpack.pack(s))
	if s[1] == ACTIVE and s[3] > 0 then
		redis.call('ZADD', scheduled, string.format('%.0f', s[3]), name)
	else
		redis.call('ZREM', scheduled, name)
	end
end
