-- What is in flight: the seqs behind `after`, in order, and the fields of the hash that are no seq of this shard.
local function flight_seqs(claimed, after)
	local seqs, strays, last = {}, {}, lasts()
	for _, seq in ipairs(claimed_seqs(claimed)) do
		if seq > after then
			seqs[#seqs + 1] = seq
		end
	end
	for _, field in ipairs(redis.call('HKEYS', flight)) do
		local seq = seq_of(field, last)
		if not seq then
			strays[#strays + 1] = field
		elseif seq > after then
			seqs[#seqs + 1] = seq
		end
	end
	table.sort(seqs)
	return seqs, strays
end

-- Whether a task of that key which comes before it waits in the key's queue.
local function is_behind(name, seq)
	local head = redis.pcall('ZRANGEBYLEX', at .. 'side', '[' .. name .. '\0', '(' .. name .. '\1', 'LIMIT', 0, 1)[1]
	local first = head and tonumber(string.sub(head, -16), 16)
	return first and first < seq
end

-- A page of it: seq, envelope, note, whether its key waits, and so on.  What is there under a number that nobody gave is
-- set aside first; whether there is more is then said with a page that may be empty.
local function flight_page(claimed, after, max)
	local seqs, strays = flight_seqs(claimed, after)
	local rows, bytes, count = {}, 0, 0
	for _, field in ipairs(strays) do
		if count == max or bytes >= 1048576 then
			return rows, 1
		end
		count, bytes = count + 1, bytes + (stray_bury('flight', field) or 0)
	end
	for _, seq in ipairs(seqs) do
		if count == max or (count > 0 and bytes >= 1048576) then
			return rows, 1
		end
		local task = flight_get(claimed, seq)
		local name = task_key(task, seq)
		local record = redis.call('HGET', at .. 'keys', name)
		local is_waiting = record and (string.sub(record, 1, 7) ~= 'waiting' or is_behind(name, seq))
		rows[#rows + 1] = seq
		rows[#rows + 1] = task
		rows[#rows + 1] = redis.call('HGET', notes, seq) or ''
		rows[#rows + 1] = is_waiting and 1 or 0
		count, bytes = count + 1, bytes + #task
	end
	return rows, 0
end
