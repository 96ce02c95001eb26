-- Tasks as list and find show them: number, seq, envelope, note, due or at, reason, id, key, and of one that
-- is too long its size.  Of one whose record or bytes cannot be read there is what can be shown: it is to be found and cancelled as well.
local function row(number, seq, bytes, note, when, reason, id, key)
	return { number, seq, bytes, note or '', when or 0, reason or '', id, key }
end

-- The same with what its bytes say of its id and key; not before it is known to be shown, since that takes a while.
local function row_named(r)
	r[7], r[8] = r[7] or task_id(r[3], r[2]), r[8] or task_key(r[3], r[2])
	return r
end

-- How long until then, as far as a number goes.
local function due_in(score)
	return math.max(0, math.min(tonumber(score) - now, 9007199254740991))
end

local function row_delayed(member, due)
	local packed = redis.call('HGET', at .. 'later', member) or ''
	local task = record_read(packed, 'number', 'string', 'string') or { 1, packed, '' }
	local number = whole(tonumber(member, 16)) or 0
	return row(number, math.min(task[1], 3) * LANE + number % LANE, task[2], task[3], due_in(due))
end

local function row_flight(claimed, seq)
	return row(seq, seq, flight_get(claimed, seq), redis.call('HGET', notes, seq))
end

local function row_parked(member)
	local field = string.format('%.0f', tonumber(string.sub(member, -16), 16) or 0)
	local seq = whole(field) or 3 * LANE
	return row(seq, seq, redis.call('HGET', at .. 'parked', field) or '', redis.call('HGET', notes, field), 0, '', nil,
		string.sub(member, 1, -18))
end

local function row_dead(number)
	local packed = redis.call('HGET', at .. 'dead', number) or ''
	local d = dead_read(packed) or { nil, 'unknown', 1, 0, 'malformed', packed, '' }
	number = whole(number) or 0
	local r = row(number, math.min(d[3], 3) * LANE + number % LANE, d[6], d[7], d[4], d[5], d[1])
	r[9] = whole(d[8]) or 0 -- the envelope is then only the first of so many bytes
	return r
end
