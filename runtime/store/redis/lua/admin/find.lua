#!lua flags=no-writes
-- find: looks for a task by its id in one state, a slice at a time.  ARGV: id, state, cursor, slice.
-- → cursor (how many were seen; queued: the last seq), is_end, rows (none or one); of a task that is not among the dead either:
--   into which it was merged, when
--include shard
--include task
--include log
--include claimed
--include page
--include marks
--include rows
--include portion

local id, state, cursor, left = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local bytes = 0
local is_made = string.find(id, '^%l+%.%d+%-%d+$')
local QUEUED, DELAYED, IN_FLIGHT, PARKED = 0, 1, 2, 3

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

local found, is_end
if state == QUEUED then
	found, is_end = find_queued()
	if found then
		found[4] = redis.call('HGET', notes, found[2]) or ''
	end
elseif state == DELAYED then
	found, is_end = find_ranked('delayed', row_delayed)
elseif state == IN_FLIGHT then
	found, is_end = find_flight()
elseif state == PARKED then
	found, is_end = find_ranked('side', row_parked)
else
	found, is_end = find_dead()
end
if state > PARKED and not found then
	return { cursor, 1, {}, find_merged() }
end
return { cursor, is_end and 1 or 0, { found and row_named(found) or nil } }
