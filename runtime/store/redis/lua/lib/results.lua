-- Results: …results has every number, …resultdata what belongs to it, …leased by when a consumer's time ends,
-- …consumers who that is.
local results, resultdata, leased, consumers = at .. 'results', at .. 'resultdata', at .. 'leased', at .. 'consumers'

-- Id, key, handler, at, data, note; nil if it cannot be read.  One that was written before notes were kept has none.
local function result_read(packed)
	return record_read(packed, 'string', 'string', 'string', 'number', 'string')
end

local function result_remove(number)
	redis.call('HDEL', resultdata, number)
	redis.call('ZREM', leased, number)
	redis.call('HDEL', consumers, number)
	return redis.call('ZREM', results, number)
end

-- Over cap or age the oldest go, whoever holds them: a limit that a stuck consumer can lift is none.
local function results_trim(max, cap, age)
	local count = redis.call('ZCARD', results)
	local dropped = 0
	while dropped < max and dropped < count do
		local oldest = redis.call('ZRANGE', results, 0, 0)[1]
		local packed = redis.call('HGET', resultdata, oldest)
		local result = packed and result_read(packed)
		-- One that cannot be read has no age: it stays for as long as there is room.
		if packed and count - dropped <= cap and (not result or result[4] + age > now) then
			break
		end
		result_remove(oldest)
		dropped = dropped + 1
	end
	if dropped > 0 then
		redis.call('HINCRBY', shard, 'results_dropped', dropped)
	end
end

local function result_put(id, key, handler, data, note)
	local number = record_add('last_result', 'resultdata', 10, decimal, cmsgpack.pack({ id, key, handler, now, data, note }))
	redis.call('ZADD', results, number, number)
end
