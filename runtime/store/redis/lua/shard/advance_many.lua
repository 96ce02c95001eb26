#!lua flags=allow-oom
-- advance_many: the common case of `advance` for several shards at once, so that the cost of running a script is paid once.
-- Common means: the shard has tasks in its lane `normal` only, no key waits, and all outcomes are plain DONE.
-- KEYS: `…shard` and `…normal` of each shard.  These reads do not arm the bell: the caller reads the bell keys afterwards.
-- ARGV: ttl, number of list nodes to sample for sizes; then eleven arguments per shard:
--   +0 lease   +1 the call's number   +2 the field `claimed` as the caller knows it   +3 number of DONE tasks
--   +4 number of done elements to trim from the list's head   +5 number of claimed elements that stay
--   +6 what `claimed` says of these after their number   +7 number of elements behind them that the caller reads
--   +8 how many of these are known to be small   +9 size of an element above which one of them must be large
--   +10 the first 512 bytes of the last claimed element; '': none is claimed
-- Returns: now, and per shard a list: 1 if it has more, how many of the next elements are known to be small, the last number
-- claimed before, the number of claimed tasks; or 0: an uncommon case, nothing has changed, and `advance` must be called.
local pcall, format, sub = redis.pcall, string.format, string.sub
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local ends, replies = format('%d', now + ARGV[1]), { now }
local function is_count(number)
	return number and number >= 0 and number <= 281470681743360 and number % 1 == 0
end
local a = 3
for i = 1, #KEYS, 2 do
	local shard, list, reply = KEYS[i], KEYS[i + 1], 0
	repeat
		-- The fence, and everything that makes a call uncommon.  pcall, because an error in one shard must not stop the others.
		local fields = pcall('HMGET', shard, 'lease', 'call', 'want', 'gone', 'done', 'normal', 'claimed')
		if fields[1] ~= ARGV[a] or fields[3] or fields[4] or ARGV[a + 2] ~= (fields[7] or '') then
			break
		end
		local last, done = tonumber(fields[6]), tonumber(fields[5])
		if tonumber(fields[2]) ~= ARGV[a + 1] - 1 or not is_count(last) or not is_count(done) then
			break
		end
		local at = sub(shard, 1, -6)
		if pcall('EXISTS', at .. 'keys', at .. 'notes', at .. 'outbox', at .. 'delayed', at .. 'control', at .. 'high',
			at .. 'low') ~= 0 then
			break
		end
		local length = pcall('LLEN', list)
		if type(length) ~= 'number' then
			break
		end
		local trim, kept, small = tonumber(ARGV[a + 4]), tonumber(ARGV[a + 5]), tonumber(ARGV[a + 8])
		local queued = length - trim - kept
		local n = math.min(queued, tonumber(ARGV[a + 7]), 256)
		if queued < 0 then
			break
		end
		-- If the last claimed element is in its place, so are all before it.
		local claimed = ARGV[a + 10]
		if claimed ~= '' then
			local bytes = pcall('LINDEX', list, format('%d', trim + kept - 1))
			if bytes ~= claimed and sub(bytes, 1, 512) ~= claimed then
				break
			end
		end
		if n > small then
			-- The size of the first nodes, scaled up to the whole list: never less than what is read, if that is small.
			local bytes = pcall('MEMORY', 'USAGE', list, 'SAMPLES', ARGV[2])
			if type(bytes) ~= 'number' or bytes > 16384 * length then
				break
			end
			-- In a long list, as many elements count as small as make up 256 KiB.
			small = math.min(queued, 2048)
			if bytes > 1048576 then
				small = math.min(small, math.floor(262144 * length / bytes))
				n = math.min(n, math.floor(1048576 * length / bytes))
				if bytes > ARGV[a + 9] * length then
					break
				end
			end
		end

		if trim > 0 then
			redis.call('LTRIM', list, ARGV[a + 4], '-1')
		end
		redis.call('HSET', shard, 'call', ARGV[a + 1], 'until', ends, 'ttl', ARGV[1], 'normal', format('%d', last + n), 'last',
			n > 0 and format('%d %d ', 281474976710657 + last, n) or '', 'claimed',
			format('0 %d%s 0', kept + n, ARGV[a + 6]), 'done', format('%d', done + ARGV[a + 3]))
		reply = { queued > n and 1 or 0, n < small and small - n or 0, last, n }
	until true
	replies[#replies + 1] = reply
	a = a + 11
end
return replies
