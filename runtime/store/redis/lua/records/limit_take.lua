#!lua flags=allow-oom
-- limit_take: shares of a limit, for one holder.  ../../limit_share.h says what a record holds and what is granted.
-- KEYS: limit, values, rest, of quiver:{APP:limit:NAME}.
-- ARGV: definition, holder, lease, call, then per item: value, want, keep, close.
-- → the definition that was used, then per item: granted, left, retry, is_full, has_waiting, closed,
-- is_over
local limit, values, rest = KEYS[1], KEYS[2], KEYS[3]
for key, wanted in pairs({ [limit] = 'hash', [values] = 'hash', [rest] = 'zset' }) do
	local is = redis.call('TYPE', key).ok
	if is ~= 'none' and is ~= wanted then
		return redis.error_reply('WRONGTYPE ' .. key .. ' is a ' .. is .. ', Quiver wants a ' .. wanted)
	end
end
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local NUMBER_MAX, LEASE_MAX, WAIT_MS, HOLDERS_MAX = 9007199254740991, 3600000, 2000, 1024
local CLOSED = string.rep('f', 32)
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
local _, rate, period, burst, concurrency, grace, values_max = unpack(d)
local holder, lease, call = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local function round_up(amount, by)
	return math.ceil(amount / by)
end

-- Until when it is closed, as it is now; nil: it is not.  No closure is longer: the clock was set back.
local function closed_now(till)
	return till > now and math.min(till, now + LEASE_MAX) or nil
end

local function close_until(till, close)
	return close > 0 and math.max(till or 0, now + close) or till
end

local function take_tokens(record, want, close)
	local full, level, since, closed, is_anew = burst * period, 0, now, nil, false
	if not record then
		level = full
	else
		local l, s = string.match(record, '^' .. NUMBER .. ' ' .. NUMBER .. '$')
		local c = '0'
		if not l then
			l, s, c = string.match(record, '^' .. NUMBER .. ' ' .. NUMBER .. ' ' .. NUMBER .. '$')
		end
		l, s, c = tonumber(l or -1), tonumber(s or -1), tonumber(c or -1)
		if l >= 0 and l <= NUMBER_MAX and s <= NUMBER_MAX and c <= NUMBER_MAX and s <= now + round_up(full, rate) then
			level, since, closed = math.min(l, full), s, closed_now(c)
			if now > since then
				level = now - since >= round_up(full - level, rate) and full or level + (now - since) * rate
				since = now
			end
		else
			is_anew = true
		end
	end
	closed = close_until(closed, close)
	local granted = closed and 0 or math.min(want, math.floor(level / period))
	level = level - granted * period
	local closed_for = closed and closed - now or 0
	local retry = granted < want and round_up(period - math.min(level, period), rate) + since - now or 0
	retry = want > 0 and math.max(retry, closed_for) or 0
	local after = nil
	if granted > 0 or is_anew or close > 0 then
		after = string.format('%.0f %.0f', level, since) .. (closed and string.format(' %.0f', closed) or '')
	end
	return granted, retry, after, math.max(since + round_up(full - level, rate), closed or 0), closed_for, false
end

local function holders_read(record)
	local list = {}
	local left = string.gsub(record .. ' ', '(%x+):' .. NUMBER .. ':' .. NUMBER .. '([:%d]*) ', function(nonce, shares, till, last)
		last = last == '' and '0' or string.match(last, '^:' .. NUMBER .. '$')
		shares, till, last = tonumber(shares), tonumber(till), tonumber(last or NUMBER_MAX + 1)
		if #nonce ~= 32 or string.find(nonce, '%u') or shares > NUMBER_MAX or till > NUMBER_MAX or last > NUMBER_MAX then
			return nil
		end
		list[#list + 1] = { nonce, shares, till, last }
		return ''
	end)
	return left == '' and #list > 0 and #list <= HOLDERS_MAX + 2 and list or nil
end

local function take_shares(record, want, keep, close)
	local parts, others, first, at_rest, count, is_own = {}, 0, nil, 0, 0, false
	local closed, has_waiting = nil, false
	local function put(nonce, shares, till, last)
		parts[#parts + 1] = string.format('%s:%.0f:%.0f', nonce, shares, till) .. (last > 0 and string.format(':%.0f', last) or '')
		at_rest = math.max(at_rest, till + (shares > 0 and grace or 0))
	end
	local list = record and holders_read(record) or {}
	if record and #list == 0 then
		others, first = concurrency, lease + grace
		put(string.rep('0', 32), concurrency, now + lease, 0)
	end
	for _, h in ipairs(list) do
		local nonce, shares = h[1], h[2]
		-- No lease is longer: the clock was set back.
		local till = math.min(h[3], now + LEASE_MAX)
		local back = till + (shares > 0 and grace or 0)
		if nonce == CLOSED then
			closed = closed_now(h[3])
		elseif back > now and nonce == holder then
			is_own = true
			if h[4] > call then -- A newer call was here before it, and nobody waits for its answer.
				return 0, 0, nil, 0, 0, false, false
			end
		elseif back > now then
			others, count = others + shares, count + 1
			if shares > 0 then
				first = math.min(first or back - now, back - now)
			else
				has_waiting = true
			end
			put(nonce, shares, till, h[4])
		end
	end
	closed = close_until(closed, close)
	local room = not closed and count < HOLDERS_MAX and math.max(0, concurrency - others) or 0
	-- What runs is counted, whether or not there is room for it.
	local granted = math.max(math.min(want, room), (is_own or count < HOLDERS_MAX) and keep or 0)
	if granted > 0 then
		put(holder, granted, now + lease, call)
	elseif want > 0 and count < HOLDERS_MAX then
		put(holder, 0, now + WAIT_MS, call)
	end
	if closed then
		put(CLOSED, 0, closed, 0)
	end
	local closed_for = closed and closed - now or 0
	local retry = granted < want and math.max(first or lease, closed_for) or 0
	return granted, retry, table.concat(parts, ' '), at_rest, closed_for, has_waiting, granted > room
end

local function forget(max)
	local gone = redis.call('ZRANGEBYSCORE', rest, '-inf', now, 'LIMIT', 0, max)
	if #gone > 0 then
		redis.call('HDEL', values, unpack(gone))
		redis.call('ZREM', rest, unpack(gone))
	end
end

local reply, was_refused = { d == stored and saved[1] or ARGV[1] }, refused
if d ~= stored then
	redis.call('HSET', limit, 'definition', ARGV[1])
end
for i = 5, #ARGV, 4 do
	local value, want, keep, close = ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3])
	local record = redis.call('HGET', values, value)
	local is_full = false
	if not record and (want > 0 or close > 0) then
		forget(4)
		if redis.call('HLEN', values) >= values_max then
			forget(64)
			is_full = redis.call('HLEN', values) >= values_max
		end
	end
	local granted, retry, after, at_rest, closed, has_waiting, is_over
	if is_full then
		refused = refused + 1
		local first = redis.call('ZRANGE', rest, 0, 0, 'WITHSCORES')
		granted, retry = 0, math.max(1, (tonumber(first[2]) or now + lease) - now)
	elseif rate > 0 then
		granted, retry, after, at_rest, closed, has_waiting = take_tokens(record, want, close)
	else
		granted, retry, after, at_rest, closed, has_waiting, is_over = take_shares(record, want, keep, close)
	end
	if after == '' then
		redis.call('HDEL', values, value)
		redis.call('ZREM', rest, value)
	elseif after then
		redis.call('HSET', values, value, after)
		redis.call('ZADD', rest, at_rest, value)
	end
	local n = #reply
	reply[n + 1], reply[n + 2], reply[n + 3] = granted, granted > 0 and lease or 0, retry
	reply[n + 4], reply[n + 5], reply[n + 6] = is_full and 1 or 0, has_waiting and 1 or 0, closed or 0
	reply[n + 7] = is_over and 1 or 0
end
if refused > was_refused then
	redis.call('HSET', limit, 'refused', string.format('%.0f', refused))
end
return reply
