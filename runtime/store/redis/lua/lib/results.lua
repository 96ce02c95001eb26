-- Results: …results has every number, …resultdata what belongs to it, …leased by when a consumer's time ends,
-- …consumers who that is.
local results, resultdata, leased, consumers = at .. 'results', at .. 'resultdata', at .. 'leased', at .. 'consumers'

local function result_remove(number)
	redis.call('HDEL', resultdata, number)
	redis.call('ZREM', leased, number)
	redis.call('HDEL', consumers, number)
	return redis.call('ZREM', results, number)
end

local function result_read(data)
	return record_read(data, 'string', 'string', 'string', 'number', 'string')
end

-- Over cap or age the oldest go, whoever holds them: a limit that a stuck consumer can lift is none.
local function results_trim(max, cap, age)
	local count = redis.call('ZCARD', results)
	local dropped = 0
	while dropped < max and dropped < count do
		local oldest = redis.call('ZRANGE', results, 0, 0)[1]
		local data = redis.call('HGET', resultdata, oldest)
		local result = data and result_read(data)
		if data and count - dropped <= cap and (not result or result[4] + age > now) then
			break
		end
		result_remove(oldest)
		dropped = dropped + 1
	end
	if dropped > 0 then
		redis.call('HINCRBY', shard, 'results_dropped', dropped)
	end
end

local function result_put(id, key, handler, data)
	local number = redis.call('HINCRBY', shard, 'last_result', 1)
	redis.call('HSET', resultdata, number, cmsgpack.pack({ id, key, handler, now, data }))
	redis.call('ZADD', results, number, number)
end
