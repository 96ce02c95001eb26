#!lua flags=allow-oom
-- dead: requeues (0) or drops (1) dead tasks.  ARGV: verb, handler ('': any), cursor, page, ids.  Without ids: a page.
-- → acted, cursor, is_end, how many were refused since they are too long to be requeued
--include shard
--include note
--include log

check_types('shard', 'dead', 'deadnumbers', 'deadids', 'high', 'normal', 'low', 'notes')
local verb, handler, cursor, page = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local last = lasts()
check_numbers('dropped')
local acted, bytes, refused = 0, 0, 0

-- Fresh budgets; history and checkpoint stay.
local function requeue(d)
	local n = note_read(d[7])
	n.attempts, n.crashes, n.interruptions, n.suspect = 0, 0, 0, 0
	note_event(n, 'requeued', '')
	append(d[3], d[6], note_write(n), last)
end

-- What is too long would be so again.  One that cannot be read stays, for fsck.
local function act(number, d)
	if not d then
		return
	elseif verb == 0 and d[5] == 'too long' then
		refused = refused + 1
		return
	elseif verb == 0 then
		requeue(d)
	else
		redis.call('UNLINK', at .. 'long.' .. string.format('%.0f', number))
		redis.call('HINCRBY', shard, 'dropped', 1)
	end
	redis.call('HDEL', at .. 'dead', number)
	redis.call('ZREM', at .. 'deadnumbers', number)
	redis.call('ZREM', at .. 'deadids', d[1] .. '\0' .. hex(number))
	acted = acted + 1
	bytes = bytes + #d[6]
end

local function get(number)
	return number and dead_read(redis.call('HGET', at .. 'dead', number))
end

for i = 5, #ARGV do
	local member = redis.call('ZRANGEBYLEX', at .. 'deadids', '[' .. ARGV[i] .. '\0', '(' .. ARGV[i] .. '\1', 'LIMIT', 0, 1)[1]
	if member then
		local number = tonumber(string.sub(member, -16), 16)
		act(number, get(number))
	end
end
local is_end = 1
if #ARGV == 4 then
	local numbers = redis.call('ZRANGEBYSCORE', at .. 'deadnumbers', '(' .. ARGV[3], '+inf', 'LIMIT', 0, page)
	is_end = #numbers < page and 1 or 0
	for _, text in ipairs(numbers) do
		if bytes >= 1048576 then
			is_end = 0
			break
		end
		local number = tonumber(text)
		local d = get(number)
		cursor = number or cursor
		if handler == '' or (d and d[2] == handler) then
			act(number, d)
		end
	end
end
return { acted, cursor, is_end, refused }
