#!lua flags=no-writes
-- list: a page of one state.  ARGV: state, cursor, max.  The cursor is the last seq (queued, in flight), the last number
-- (dead) or how many were seen (delayed, parked).  → cursor, is_end, rows
--include shard
--include task
--include log
--include claimed
--include page
--include marks
--include rows
--include portion

local state, cursor, left, bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), 0
local QUEUED, DELAYED, IN_FLIGHT, PARKED = 0, 1, 2, 3
local rows = {}

local function is_full()
	return left == 0 or bytes >= 1048576
end

local function add(r)
	left = left - 1
	bytes = bytes + #r[3]
	rows[#rows + 1] = row_named(r)
end

-- True at the end of the lane.
local function list_lane(lane, c, marks)
	local index = math.max(c.count, cursor - lane * LANE - c.base)
	while not is_full() do
		local fit, is_large = portion(lanes[lane], 1024)
		local asked = math.min(left, fit, is_large and 8 or 32)
		local some = redis.call('LRANGE', lanes[lane], index, index + asked - 1)
		for _, task in ipairs(some) do
			if is_full() then
				return false
			end
			index = index + 1
			cursor = lane * LANE + c.base + index
			if task == MARK and marks > 0 then
				left = left - 1
			else
				add(row(cursor, cursor, task, redis.call('HGET', notes, cursor)))
			end
		end
		if #some < asked then
			return true
		end
	end
	return false
end

local function list_queued()
	local claimed, marks = claimed_read(), marks_read(redis.call('HGET', shard, 'gone'))
	for lane = math.floor(cursor / LANE), 2 do
		if not list_lane(lane, claimed[lane], marks[lane]) then
			return false
		end
	end
	return true
end

local function list_ranked(name, show)
	local members = redis.call('ZRANGE', at .. name, cursor, cursor + left - 1, 'WITHSCORES')
	local asked = left
	for i = 1, #members, 2 do
		if is_full() then
			return false
		end
		add(show(members[i], members[i + 1]))
		cursor = cursor + 1
	end
	return #members / 2 < asked
end

local function list_flight()
	local claimed = claimed_read()
	for _, seq in ipairs(flight_seqs(claimed, cursor)) do
		if is_full() then
			return false
		end
		add(row_flight(claimed, seq))
		cursor = seq
	end
	return true
end

-- By score, which is the number: it must grow from page to page, whatever the member is.
local function list_dead()
	local asked = left
	local members = redis.call('ZRANGEBYSCORE', at .. 'deadnumbers', '(' .. ARGV[2], 9007199254740991, 'WITHSCORES', 'LIMIT', 0,
		asked)
	for i = 1, #members, 2 do
		if is_full() then
			return false
		end
		add(row_dead(members[i]))
		cursor = math.ceil(tonumber(members[i + 1]))
	end
	return #members / 2 < asked
end

local is_end
if state == QUEUED then
	is_end = list_queued()
elseif state == DELAYED then
	is_end = list_ranked('delayed', row_delayed)
elseif state == IN_FLIGHT then
	is_end = list_flight()
elseif state == PARKED then
	is_end = list_ranked('side', row_parked)
else
	is_end = list_dead()
end
return { cursor, is_end and 1 or 0, rows }
