#!lua flags=no-writes
-- find: looks for a task by its id, a slice at a time, through the states in the order of a task's life.
-- ARGV: id, stage (1: the first state, from there on), cursor, slice.
-- → stage, cursor within it (how many were seen; queued, in flight: the last seq), rows (none or one); behind the last stage:
--   into which it was merged, when
--include shard
--include task
--include log
--include claimed
--include page
--include marks
--include rows
--include portion

local id, stage, cursor, left = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local is_first_call = stage == 1 and cursor == 0
local bytes = 0
local is_made = string.find(id, '^%l+%.%d+%-%d+$')

local function is_it(r)
	left = left - 1
	bytes = bytes + #r[3]
	-- Most are passed over without being taken apart: an id that nobody made of a seq stands in the bytes.
	return (is_made or string.find(r[3], id, 1, true)) and task_id(r[3], r[2]) == id
end

local function is_tired()
	return left <= 0 or bytes >= 4194304
end

local function find_queued()
	local claimed = claimed_read()
	for lane = math.floor(cursor / LANE), 2 do
		local c = claimed[lane]
		local index = math.max(c.count, cursor - lane * LANE - c.base)
		while true do
			local fit, is_large = portion(lanes[lane], 1024)
			local asked = math.min(fit, is_large and 8 or 64)
			local some = redis.call('LRANGE', lanes[lane], index, index + asked - 1)
			for _, task in ipairs(some) do
				index = index + 1
				cursor = lane * LANE + c.base + index
				local r = row(cursor, cursor, task)
				if is_it(r) then
					return r
				end
			end
			if #some < asked then
				break
			end
			if is_tired() then
				return nil, false
			end
		end
	end
	return nil, true
end

local function find_ranked(name, show)
	while not is_tired() do
		local members = redis.call('ZRANGE', at .. name, cursor, cursor + 63, 'WITHSCORES')
		for i = 1, #members, 2 do
			local r = show(members[i], members[i + 1])
			cursor = cursor + 1
			if is_it(r) then
				return r
			end
		end
		if #members < 128 then
			return nil, true
		end
	end
	return nil, false
end

local function find_flight()
	local claimed = claimed_read()
	for _, seq in ipairs(flight_seqs(claimed, cursor)) do
		if is_tired() then
			return nil, false
		end
		local r = row_flight(claimed, seq)
		cursor = seq
		if is_it(r) then
			return r
		end
	end
	return nil, true
end

local function find_dead()
	local member = redis.call('ZRANGEBYLEX', at .. 'deadids', '[' .. id .. '\0', '(' .. id .. '\1', 'LIMIT', 0, 1)[1]
	return member and row_dead(string.format('%.0f', tonumber(string.sub(member, -16), 16) or 0)), true
end

-- The shard remembers the latest.
local function find_merged()
	for _, entry in ipairs(redis.pcall('LRANGE', at .. 'merged', 0, -1)) do
		local its_id, when, into = string.match(entry, '^(%S+) (%d+) (%S+)$')
		if its_id == id then
			return into, whole(when) or 0
		end
	end
	return '', 0
end

local function find_delayed()
	return find_ranked('delayed', row_delayed)
end

local function find_parked()
	return find_ranked('side', row_parked)
end

local stages = { find_delayed, find_queued, find_flight, find_parked, find_dead }

-- A task that moves on between two calls is met later.  A retry that is due goes back, from parked to in flight.
local function find_gone_back()
	cursor, left, bytes = 0, tonumber(ARGV[4]), 0
	return (find_flight())
end

local found
while not found and stage <= #stages do
	local is_end
	found, is_end = stages[stage]()
	if not found and not is_end then
		return { stage, cursor, {} }
	elseif not found then
		stage, cursor = stage + 1, 0
	end
end
if not found and not is_first_call then
	found = find_gone_back()
	stage = found and 3 or stage
end
if not found then
	return { stage, 0, {}, find_merged() }
end
if stage == 2 then
	found[4] = redis.call('HGET', notes, found[2]) or ''
end
return { stage, cursor, { row_named(found) } }
