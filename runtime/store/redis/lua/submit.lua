#!lua
-- submit: tasks with options, or with a limit to the backlog, or to be waited for.  ARGV: backlog_max (0: none), the name
-- of who waits for replicas ('': nobody) and the mark that it looks for, then per task: lane, not_before, delay,
-- unique_ms, scope, id, envelope.  → the backlog, then per task 0 (stored), 1 (full), or the id that is there already
--include shard
--include log
--include marks

check_types('shard', 'high', 'normal', 'low', 'delayed', 'later', 'parked', 'notes')
check_counts('last_delayed')
local max = tonumber(ARGV[1])
local backlog = 0
if max > 0 then
	local marks = marks_read(redis.call('HGET', shard, 'gone'))
	backlog = redis.call('ZCARD', delayed) + redis.call('HLEN', at .. 'parked')
	for lane = 0, 2 do
		backlog = backlog + redis.call('LLEN', lanes[lane]) - marks[lane]
	end
end

local function submit(lane, not_before, wait, unique_ms, scope, id, bytes)
	if max > 0 and backlog >= max then
		return 1
	end
	if unique_ms > 0 then
		local name = at .. 'unique:' .. scope
		local first = redis.call('SET', name, id, 'NX', 'GET', 'PXAT', now + unique_ms - 1)
		if first then
			return first
		end
	end
	local due = math.max(wait > 0 and now + wait or 0, not_before)
	if due > now then
		delay(lane, due, bytes)
	else
		redis.call('RPUSH', lanes[lane], bytes)
	end
	backlog = backlog + 1
	return 0
end

for i = 4, #ARGV, 7 do
	local name = at .. 'unique:' .. ARGV[i + 4]
	local is = tonumber(ARGV[i + 3]) > 0 and redis.call('TYPE', name).ok or 'none'
	if is ~= 'none' and is ~= 'string' then
		error({ err = 'WRONGTYPE ' .. name .. ' is a ' .. is .. ', Quiver wants a string' })
	end
end
if ARGV[2] ~= '' then
	redis.call('HSET', at .. 'wait.' .. ARGV[2], ARGV[3], 1)
	redis.call('PEXPIRE', at .. 'wait.' .. ARGV[2], 60000)
end
local answers = { 0 }
for i = 4, #ARGV, 7 do
	answers[#answers + 1] = submit(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]),
		tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5], ARGV[i + 6])
end
answers[1] = backlog
return answers
