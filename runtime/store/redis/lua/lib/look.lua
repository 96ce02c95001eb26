-- What waits in the shard.  Comes last in a script: Redis rings at the next foreign write to a bell key that was read
-- after our own last write to it.
-- `keys_from`: keys that are due before this time are not counted.
local function look(keys_from)
	local first = redis.call('ZRANGE', delayed, 0, 0, 'WITHSCORES')[2]
	local due = redis.call('ZRANGE', at .. 'due', keys_from or '-inf', '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')[2]
	local next_ms = math.min(first and tonumber(first) or math.huge, due and tonumber(due) or math.huge)
	local is_queued = redis.call('EXISTS', lanes[0], lanes[1], lanes[2]) > 0
	local controls = redis.call('LLEN', control)
	redis.call('EXISTS', shard)
	next_ms = next_ms > 9007199254740991 and -1 or math.max(0, next_ms - now)
	return next_ms, is_queued, controls
end
