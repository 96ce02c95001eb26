-- Submits that may be repeated.  …idempotent: name → "UNTIL DIGEST ID"; …idempotentends: the same names by when their time
-- is over.  A name is the client's, a newline, the task's key.
local idempotent, idempotent_ends = at .. 'idempotent', at .. 'idempotentends'

-- Until, digest, id; nothing if it cannot be read.
local function idempotent_read(record)
	local till, digest, id = string.match(record, '^(%d+) (%x+) ([%w._-]+)$')
	till = whole(till)
	if till and #digest == 64 and #id <= 64 and string.find(id, '%-%d+$') then
		return till, digest, id
	end
end

-- What is remembered under a name: id and digest, two empty texts if that cannot be read; nil: nothing, or its time is over.
local function idempotent_look(name)
	local record = redis.call('HGET', idempotent, name)
	if not record then
		return nil
	end
	local till, digest, id = idempotent_read(record)
	if not till then
		return { '', '' }
	end
	return till > now and { id, digest } or nil
end

local function idempotent_remove(name)
	redis.call('HDEL', idempotent, name)
	redis.call('ZREM', idempotent_ends, name)
end

-- Each record that comes removes some whose time is over: as many go as come.
local function idempotent_sweep()
	for _, name in ipairs(redis.call('ZRANGEBYSCORE', idempotent_ends, '-inf', now, 'LIMIT', 0, 4)) do
		idempotent_remove(name)
	end
end

local function idempotent_put(name, keep_ms, digest, id)
	local till = string.format('%.0f', now + keep_ms)
	redis.call('HSET', idempotent, name, till .. ' ' .. digest .. ' ' .. id)
	redis.call('ZADD', idempotent_ends, till, name)
end
