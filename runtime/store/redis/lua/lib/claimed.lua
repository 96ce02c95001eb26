-- Tasks that were claimed and still stand in their lane's list: its first elements, as many as the shard's field `claimed`
-- says.  So a claim in the common case moves a number and no task, and its commit is an LTRIM.  Per lane, and with a blank
-- between lanes: COUNT, or COUNT:DONE:SUM if some of them are done behind one that is not.  DONE has a hexadecimal digit for
-- each four places, the lowest bit for the first of them.  SUM is what the last done element looks like: where another
-- stands there, somebody has put elements before it or removed some, and which ones are done is not known any more.
-- An owner compares more: it says what the last element looks like that it has claimed.
-- Whatever is not the common case begins with claimed_move(): from then on all that is in flight is in the in-flight hash.
local CLAIMED_MAX = 4096

-- As lane.c makes it.
local function claimed_sum(bytes)
	local sum = 0
	for i, byte in ipairs({ string.byte(bytes, 1, 512) }) do
		sum = sum + i * 40503 % 65536 * byte
	end
	return string.format('%d.%d', #bytes, sum % 2147483648)
end

-- By lane: count, done, the place of the last done one, its sum; nil if it cannot be read.
local function claimed_parse(text, last)
	local claimed = {}
	local words = { string.match(text and text ~= '' and text or '0 0 0', '^(%S+) (%S+) (%S+)$') }
	for lane = 0, 2 do
		local word = words[lane + 1] or ''
		local count, done, sum = string.match(word, '^(%d+):(%x+):(%d+%.%d+)$')
		local digit = done and tonumber(string.sub(done, -1), 16) or 0
		local last_done = done and 4 * #done - (digit >= 8 and 0 or digit >= 4 and 1 or digit >= 2 and 2 or 3) or 0
		count = whole(count or word)
		if not count or count > CLAIMED_MAX or count > last[lane] or last_done > count or (done and digit == 0) then
			return nil
		end
		claimed[lane] = { count = count, done = done, last_done = last_done, sum = sum }
	end
	return claimed
end

-- Compares it with the lists.  A list that is shorter than what was claimed of it has lost that: what is there now is queued.
-- Of one in which something else stands for the last done element, nothing counts as done.  `is_changed` is set for both.
-- `base` is the number before that of the list's first element.
local function claimed_compare(claimed, last)
	for lane = 0, 2 do
		local c = claimed[lane]
		local length = c.count > 0 and redis.pcall('LLEN', lanes[lane])
		if length and (type(length) ~= 'number' or length < c.count) then
			c.count, c.done, c.is_changed, c.is_short = 0, nil, true, true
		elseif c.done and claimed_sum(redis.call('LINDEX', lanes[lane], c.last_done - 1)) ~= c.sum then
			c.done, c.is_changed = nil, true
		end
		c.base = last[lane] - c.count
	end
	return claimed
end

-- For whoever only looks: what cannot be read is nothing.
local function claimed_read()
	local last = lasts()
	local claimed = claimed_parse(redis.call('HGET', shard, 'claimed'), last) or claimed_parse('', last)
	return claimed_compare(claimed, last)
end

-- For whoever counts on it; `text` and `last` as they are stored, if the caller has read them.
local function claimed_check(text, last)
	text, last = last and text or redis.call('HGET', shard, 'claimed'), last or lasts()
	return claimed_compare(claimed_parse(text, last) or bad_value('claimed', text), last)
end

-- Whether a claimed element does not begin with these bytes, which its owner has read there; '': it has read none.
local function claimed_is_other(claimed, lane, place, bytes)
	return bytes ~= '' and place >= 1 and place <= claimed[lane].count and
		string.sub(redis.call('LINDEX', lanes[lane], place - 1), 1, 512) ~= bytes
end

local function claimed_is_done(c, place)
	local digit = c.done and tonumber(string.sub(c.done, math.ceil(place / 4), math.ceil(place / 4)), 16) or 0
	return math.floor(digit / 2 ^ ((place - 1) % 4)) % 2 == 1
end

-- The seqs of those that are not done, in order.
local function claimed_seqs(claimed)
	local seqs = {}
	for lane = 0, 2 do
		local c = claimed[lane]
		for place = 1, c.count do
			if not claimed_is_done(c, place) then
				seqs[#seqs + 1] = lane * LANE + c.base + place
			end
		end
	end
	return seqs
end

-- The bytes of a task that is in flight, wherever they stand; nothing if it is not.
local function flight_get(claimed, seq)
	local c = claimed[math.floor(seq / LANE)]
	local place = c and seq % LANE - c.base
	if place and place >= 1 and place <= c.count and not claimed_is_done(c, place) then
		return redis.call('LINDEX', lanes[math.floor(seq / LANE)], place - 1)
	end
	return redis.call('HGET', flight, seq)
end

-- Moves them to the in-flight hash.  What it touches was checked before: this is a first write.  Returns how many bytes.
local function claimed_move(claimed)
	local moved = 0
	for lane = 0, 2 do
		local c = claimed[lane]
		for from = 0, c.count - 1, 256 do
			local put = {}
			for i, bytes in ipairs(redis.call('LRANGE', lanes[lane], from, math.min(from + 256, c.count) - 1)) do
				if not claimed_is_done(c, from + i) then
					put[#put + 1] = string.format('%d', lane * LANE + c.base + from + i)
					put[#put + 1] = bytes
					moved = moved + #bytes
				end
			end
			if #put > 0 then
				redis.call('HSET', flight, unpack(put))
			end
		end
		if c.count > 0 then
			redis.call('LTRIM', lanes[lane], c.count, -1)
		end
		c.count, c.done, c.base = 0, nil, c.base + c.count
	end
	redis.call('HDEL', shard, 'claimed')
	return moved
end

-- The number before that of each list's first element, for append().
local function bases()
	local claimed = claimed_check()
	return { [0] = claimed[0].base, claimed[1].base, claimed[2].base }
end

-- Whether a list has more than what is claimed of it.
local function is_any_queued(claimed)
	for lane = 0, 2 do
		local length = redis.pcall('LLEN', lanes[lane])
		if type(length) ~= 'number' or length > claimed[lane].count then
			return true
		end
	end
	return false
end
