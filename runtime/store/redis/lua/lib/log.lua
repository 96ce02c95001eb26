-- Tasks enter a shard.  `last` has the last number given in each lane: an entry's number is that plus its place in the
-- list, so a note can be laid down for it before it is claimed.
local function append(lane, bytes, note, last)
	local length = redis.call('RPUSH', lanes[lane], bytes)
	if note and note ~= '' then
		redis.call('HSET', notes, lane * LANE + last[lane] + length, note)
	end
end

local function delay(lane, due, bytes, note)
	local number = record_add('last_delayed', 'later', 16, hex, cmsgpack.pack({ lane, bytes, note or '' }))
	redis.call('ZADD', delayed, due, hex(number))
end

local function lasts()
	local l = redis.call('HMGET', shard, 'high', 'normal', 'low')
	return { [0] = whole(l[1]) or 0, whole(l[2]) or 0, whole(l[3]) or 0 }
end

-- Whether the shard has given this seq; `last` as lasts() says.
local function seq_is_given(seq, last)
	local lane = seq and math.floor(seq / LANE)
	local given = lane and last[lane]
	return given and seq % LANE >= 1 and seq % LANE <= given and seq % 1 == 0
end

-- The seq that a field of …flight or …parked names, or nil if the shard has not given it.
local function seq_of(field, last)
	local seq = whole(field)
	return seq_is_given(seq, last) and string.format('%d', seq) == field and seq or nil
end
