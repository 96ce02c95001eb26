-- Tasks enter a shard.  `last` has the last number given in each lane: an entry's number is that plus its place in the
-- list, so a note can be laid down for it before it is claimed.
local function append(lane, bytes, note, last)
	local length = redis.call('RPUSH', lanes[lane], bytes)
	if note and note ~= '' then
		redis.call('HSET', notes, lane * LANE + last[lane] + length, note)
	end
end

local function delay(lane, due, bytes, note)
	local number = hex(redis.call('HINCRBY', shard, 'last_delayed', 1))
	redis.call('HSET', at .. 'later', number, cmsgpack.pack({ lane, bytes, note or '' }))
	redis.call('ZADD', delayed, due, number)
end

local function lasts()
	local l = redis.call('HMGET', shard, 'high', 'normal', 'low')
	for i = 1, 3 do
		l[i] = tonumber(l[i] or 0)
		if not l[i] then
			error({ err = 'CORRUPT ' .. shard .. ': its field ' .. lane_names[i - 1] .. ' is no number' })
		end
	end
	return { [0] = l[1], l[2], l[3] }
end
