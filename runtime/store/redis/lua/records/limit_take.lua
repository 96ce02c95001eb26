#!lua flags=allow-oom
-- limit_take: shares of a limit, for one holder.  ../../limit_share.h says what a record holds and what is granted.
-- KEYS: limit, values, rest, of quiver:{APP:limit:NAME}.
-- ARGV: definition, holder, lease, then per item: value, want.
-- → the version of the definition that was used, then per item: granted, left, retry, is_full
local limit, values, rest = KEYS[1], KEYS[2], KEYS[3]
for key, wanted in pairs({ [limit] = 'hash', [values] = 'hash', [rest] = 'zset' }) do
	local is = redis.call('TYPE', key).ok
	if is ~= 'none' and is ~= wanted then
		return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. is .. ', Quiver wants a ' .. wanted)
	end
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local NUMBER_MAX, LEASE_MAX, HOLDERS_MAX = 9007199254740991, 3600000, 1024
local NUMBER = '(%d%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?%d?)'

local function definition_read(text)
	local d = { string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$') }
	for i = 1, 7 do
		d[i] = tonumber(d[i] or -1)
		if d[i] < 0 or d[i] > NUMBER_MAX then
			return nil
		end
	end
	local is_rate, is_concurrency = d[2] > 0, d[5] > 0
	if d[1] == 0 or is_rate == is_concurrency or (is_rate and (d[3] == 0 or d[4] == 0)) or d[7] == 0 then
		return nil
	end
	return d
end

local saved = redis.call('HMGET', limit, 'definition', 'refused')
local refused = tonumber(string.match(saved[2] or '0', '^' .. NUMBER .. '$') or 0)
local stored = saved[1] and definition_read(saved[1])
local d = definition_read(ARGV[1])
if stored and stored[1] >= d[1] then
	d = stored
end
local version, rate, period, burst, concurrency, grace, values_max = unpack(d)
local holder, lease = ARGV[2], tonumber(ARGV[3])

local function round_up(amount, by)
	return math.ceil(amount / by)
end

local function take_tokens(record, want)
	local full, level, since, is_anew = burst * period, 0, now, false
	if not record then
		level = full
	else
		local l, s = string.match(record, '^' .. NUMBER .. ' ' .. NUMBER .. '$')
		l, s = tonumber(l or -1), tonumber(s or -1)
		if l >= 0 and l <= NUMBER_MAX and s <= NUMBER_MAX and s <= now + round_up(full, rate) then
			level, since = math.min(l, full), s
			if now > since then
				level = now - since >= round_up(full - level, rate) and full or level + (now - since) * rate
				since = now
			end
		else
			is_anew = true
		end
	end
	local granted = math.min(want, math.floor(level / period))
	level = level - granted * period
	local retry = granted < want and round_up(period - level, rate) + since - now or 0
	local after = (granted > 0 or is_anew) and string.format('%.0f %.0f', level, since) or nil
	return granted, retry, after, since + round_up(full - level, rate)
end

local function holders_read(record)
	local list = {}
	local left = string.gsub(record .. ' ', '(%x+):' .. NUMBER .. ':' .. NUMBER .. ' ', function(nonce, shares, till)
		shares, till = tonumber(shares), tonumber(till)
		if #nonce ~= 32 or string.find(nonce, '%u') or shares > NUMBER_MAX or till > NUMBER_MAX then
			return nil
		end
		list[#list + 1] = { nonce, shares, till }
		return ''
	end)
	return left == '' and #list > 0 and #list <= HOLDERS_MAX and list or nil
end

local function take_shares(record, want)
	local parts, others, first, at_rest, count = {}, 0, nil, 0, 0
	local function put(nonce, shares, till)
		parts[#parts + 1] = string.format('%s:%.0f:%.0f', nonce, shares, till)
		at_rest = math.max(at_rest, till + grace)
	end
	local list = record and holders_read(record) or {}
	if record and #list == 0 then
		others, first = concurrency, lease + grace
		put(string.rep('0', 32), concurrency, now + lease)
	end
	for _, h in ipairs(list) do
		-- No lease is longer: the clock was set back.
		local till = math.min(h[3], now + LEASE_MAX)
		if till + grace > now and h[1] ~= holder then
			others, count = others + h[2], count + 1
			first = math.min(first or till + grace - now, till + grace - now)
			put(h[1], h[2], till)
		end
	end
	local room = count < HOLDERS_MAX and math.max(0, concurrency - others) or 0
	local granted = math.min(want, room)
	if granted > 0 then
		put(holder, granted, now + lease)
	end
	return granted, granted < want and (first or lease) or 0, table.concat(parts, ' '), at_rest
end

local function forget(max)
	local gone = redis.call('ZRANGEBYSCORE', rest, '-inf', now, 'LIMIT', 0, max)
	if #gone > 0 then
		redis.call('HDEL', values, unpack(gone))
		redis.call('ZREM', rest, unpack(gone))
	end
end

local reply, was_refused = { version }, refused
if d ~= stored then
	redis.call('HSET', limit, 'definition', ARGV[1])
end
for i = 4, #ARGV, 2 do
	local value, want = ARGV[i], tonumber(ARGV[i + 1])
	local record = redis.call('HGET', values, value)
	local is_full = false
	if not record and want > 0 then
		forget(4)
		if redis.call('HLEN', values) >= values_max then
			forget(64)
			is_full = redis.call('HLEN', values) >= values_max
		end
	end
	local granted, retry, after, at_rest
	if is_full then
		refused = refused + 1
		local first = redis.call('ZRANGE', rest, 0, 0, 'WITHSCORES')
		granted, retry = 0, math.max(1, (tonumber(first[2]) or now + lease) - now)
	elseif rate > 0 then
		granted, retry, after, at_rest = take_tokens(record, want)
	else
		granted, retry, after, at_rest = take_shares(record, want)
	end
	if after == '' then
		redis.call('HDEL', values, value)
		redis.call('ZREM', rest, value)
	elseif after then
		redis.call('HSET', values, value, after)
		redis.call('ZADD', rest, at_rest, value)
	end
	local n = #reply
	reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = granted, granted > 0 and lease or 0, retry, is_full and 1 or 0
end
if refused > was_refused then
	redis.call('HSET', limit, 'refused', string.format('%.0f', refused))
end
return reply
