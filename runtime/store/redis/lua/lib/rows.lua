-- Tasks as list and find show them: number, seq, envelope, note, due or at, reason, id ('' unless it is recorded).
local function row(number, seq, bytes, note, when, reason, id)
	return { number, seq, bytes, note or '', when or 0, reason or '', id or '' }
end

local function row_delayed(member, due)
	local task = cmsgpack.unpack(redis.call('HGET', at .. 'later', member))
	local number = tonumber(member, 16)
	return row(number, task[1] * LANE + number, task[2], task[3], math.max(0, tonumber(due) - now))
end

local function row_flight(seq)
	return row(seq, seq, redis.call('HGET', flight, seq), redis.call('HGET', notes, seq))
end

local function row_parked(member)
	local seq = tonumber(string.sub(member, -16), 16)
	return row(seq, seq, redis.call('HGET', at .. 'parked', seq), redis.call('HGET', notes, seq))
end

local function row_dead(number)
	local d = cmsgpack.unpack(redis.call('HGET', at .. 'dead', number))
	return row(tonumber(number), d[3] * LANE + tonumber(number), d[6], d[7], d[4], d[5], d[1])
end
