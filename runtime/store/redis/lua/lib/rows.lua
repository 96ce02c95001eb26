-- Tasks as list and find show them: number, seq, envelope, note, due or at, reason, id ('' unless it is recorded), and of one
-- that is too long its size.  What cannot be read is shown as it is.
local function row(number, seq, bytes, note, when, reason, id)
	return { number, seq, bytes, note or '', when or 0, reason or '', id or '' }
end

local function row_delayed(member, due)
	local packed = redis.call('HGET', at .. 'later', member) or ''
	local task, number = later_read(packed), tonumber(member, 16) or 0
	local due_in = math.min(math.max(0, tonumber(due) - now), LANE)
	if not task then
		return row(number, number, packed, '', due_in)
	end
	return row(number, task[1] * LANE + number, task[2], task[3], due_in)
end

local function row_flight(seq)
	return row(seq, seq, redis.call('HGET', flight, seq), redis.call('HGET', notes, seq))
end

local function row_parked(member)
	local seq = tonumber(string.sub(member, -16), 16) or 0
	return row(seq, seq, redis.call('HGET', at .. 'parked', seq) or '', redis.call('HGET', notes, seq))
end

local function row_dead(number)
	local packed = redis.call('HGET', at .. 'dead', number) or ''
	local d = dead_read(packed)
	if not d then
		return row(tonumber(number), tonumber(number), packed, '', 0, 'unreadable', 'unreadable.' .. number)
	end
	local r = row(tonumber(number), d[3] * LANE + tonumber(number), d[6], d[7], d[4], d[5], d[1])
	r[8] = d[8] -- of one that is too long: how many bytes it has, of which only the first are here
	return r
end
