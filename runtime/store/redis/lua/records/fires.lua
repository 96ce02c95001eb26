#!lua flags=allow-oom
-- fires: times of schedules that have come.  ARGV: lease, call, then per time: name, version, expected, next (0: none),
-- how many times besides pass, has_task, unless_alive, lane, envelope.
-- → per time: 0 (fired), 1 (skipped), 2 (stale), and what is stored then: state, version, next, last, last_seq, fired, skipped
--include shard
--include look
--include log
--include claimed
--include schedule

local fields = redis.call('HMGET', shard, 'lease', 'call')
if fields[1] ~= ARGV[1] then
	return 'FENCED'
end
local call, last_call = tonumber(ARGV[2]), check_counts('call').call
if call ~= last_call + 1 and call ~= last_call then
	return 'FENCED'
end
check_types('schedules', 'scheduled', 'flight', 'parked', 'high', 'normal', 'low', 'delayed', 'control', 'due')
check_counts('high', 'normal', 'low')
local claimed, reply = claimed_check(), {}
local FIRED, SKIPPED, STALE = 0, 1, 2

-- Queued, in flight or parked.
local function is_alive(seq)
	local lane = math.floor(seq / LANE)
	if seq < 1 or not lanes[lane] then
		return false
	end
	local c, field = claimed[lane], decimal(seq)
	local place = seq % LANE - c.base
	return (place >= 1 and place <= redis.call('LLEN', lanes[lane]) and not claimed_is_done(c, place)) or
		redis.call('HEXISTS', flight, field) == 1 or redis.call('HEXISTS', at .. 'parked', field) == 1
end

local function fire(name, version, expected, next_ms, passed, has_task, unless_alive, lane, bytes)
	local s = schedule_get(name)
	if not s then
		return STALE, { 0, 0, 0, 0, 0, 0, 0 }
	end
	if call == last_call then
		local is_done = s[2] == version and s[3] == next_ms
		return is_done and (s[4] == expected and FIRED or SKIPPED) or STALE, s
	end
	if s[1] ~= ACTIVE or s[2] ~= version or s[3] ~= expected then
		return STALE, s
	end
	local kind = has_task and not (unless_alive and is_alive(s[5])) and FIRED or SKIPPED
	s[3], s[7] = next_ms, s[7] + passed
	if kind == FIRED then
		s[4], s[5], s[6] = expected, lane * LANE + claimed[lane].base + redis.call('RPUSH', lanes[lane], bytes), s[6] + 1
	else
		s[7] = s[7] + 1
	end
	schedule_put(name, s)
	return kind, s
end

for i = 3, #ARGV, 9 do
	local kind, s = fire(ARGV[i], tonumber(ARGV[i + 1]), tonumber(ARGV[i + 2]), tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4]),
		ARGV[i + 5] == '1', ARGV[i + 6] == '1', tonumber(ARGV[i + 7]), ARGV[i + 8])
	reply[#reply + 1] = kind
	for j = 1, 7 do
		reply[#reply + 1] = decimal(s[j])
	end
end
if call > last_call then
	redis.call('HSET', shard, 'call', ARGV[2], 'last', '')
end
look()
return reply
