#!lua
-- submit: tasks with options, or with a limit to the backlog, or to be waited for.  ARGV: backlog_max (0: none), the name
-- of who waits for replicas ('': nobody) and the mark that it looks for, how many idempotency names a shard remembers, then
-- per task: lane, not_before, delay, unique_ms, scope, id, envelope, idempotency name ('': none), for how long, digest.
-- → the backlog, then per task 0 (stored), 1 (full), 2 (remembers no more names), the id that is there already, or what
-- is remembered under its name: id and digest
--include shard
--include log
--include claimed
--include marks
--include idempotency

-- How many elements of each list are claimed, by what the shard says and the lists' lengths alone.  Nothing of a task is read:
-- whoever may only submit counts by this.
local function claimed_counts(lengths)
	local last, counts = lasts(), {}
	local claimed = claimed_parse(redis.call('HGET', shard, 'claimed'), last) or claimed_parse('', last)
	for lane = 0, 2 do
		counts[lane] = claimed[lane].count <= lengths[lane] and claimed[lane].count or 0
	end
	return counts
end

check_types('shard', 'high', 'normal', 'low', 'delayed', 'later', 'parked', 'notes')
check_counts('last_delayed')
local max, names_max = tonumber(ARGV[1]), tonumber(ARGV[4])
local VALUES = 10 -- of a task
local backlog = 0
if max > 0 then
	local marks = marks_read(redis.call('HGET', shard, 'gone'))
	local lengths = {}
	for lane = 0, 2 do
		lengths[lane] = redis.call('LLEN', lanes[lane])
	end
	local claimed = claimed_counts(lengths)
	backlog = redis.call('ZCARD', delayed) + redis.call('HLEN', at .. 'parked')
	for lane = 0, 2 do
		backlog = backlog + lengths[lane] - marks[lane] - claimed[lane]
	end
end

local function submit(lane, not_before, wait, unique_ms, scope, id, bytes, name, keep_ms, digest)
	-- A repeat comes before all limits: it stores nothing.
	if name ~= '' then
		local known = idempotent_look(name)
		if known then
			return known
		end
		idempotent_remove(name)
		idempotent_sweep()
		if redis.call('HLEN', idempotent) >= names_max then
			return 2
		end
	end
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
	if name ~= '' then
		idempotent_put(name, keep_ms, digest, id)
	end
	backlog = backlog + 1
	return 0
end

for i = 5, #ARGV, VALUES do
	if ARGV[i + 7] ~= '' then
		check_types('idempotent', 'idempotentends')
	end
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
for i = 5, #ARGV, VALUES do
	answers[#answers + 1] = submit(tonumber(ARGV[i]), tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]),
		tonumber(ARGV[i + 3]), ARGV[i + 4], ARGV[i + 5], ARGV[i + 6], ARGV[i + 7], tonumber(ARGV[i + 8]), ARGV[i + 9])
end
answers[1] = backlog
return answers
