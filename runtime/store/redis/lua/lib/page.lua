-- The in-flight table by seq, a page of it: seq, envelope, note, whether its key waits, and so on.
local function flight_seqs(after)
	local seqs = {}
	for _, field in ipairs(redis.call('HKEYS', flight)) do
		local seq = tonumber(field)
		if seq and seq > after then
			seqs[#seqs + 1] = seq
		end
	end
	table.sort(seqs)
	return seqs
end

local function flight_page(after, max)
	local seqs = flight_seqs(after)
	local rows, bytes, count = {}, 0, 0
	for _, seq in ipairs(seqs) do
		if count == max or (count > 0 and bytes >= 1048576) then
			return rows, 1
		end
		local task = redis.call('HGET', flight, seq)
		local record = redis.call('HGET', at .. 'keys', task_key(task, seq))
		local is_waiting = record and string.sub(record, 1, 7) ~= 'waiting'
		rows[#rows + 1] = seq
		rows[#rows + 1] = task
		rows[#rows + 1] = redis.call('HGET', notes, seq) or ''
		rows[#rows + 1] = is_waiting and 1 or 0
		count, bytes = count + 1, bytes + #task
	end
	return rows, 0
end
