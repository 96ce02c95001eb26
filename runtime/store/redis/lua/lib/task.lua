-- What a script must know of an envelope.  Nothing here judges it: that is the driver's part.
local shard_number = string.match(at, ':(%d+)}:$')

local function task_field(bytes, name)
	local stop = string.find(bytes, '\n\n', 1, true)
	return string.match(string.sub(bytes, 1, stop or 8192), '\n' .. name .. ':([^\n]*)\n')
end

-- One that was pushed without an id, or with one that no command would find it by, is called by its seq.
local function task_id(bytes, seq)
	local id = task_field(bytes, 'id')
	if id and #id <= 64 and string.match(id, '^[%w._-]+%-(%d+)$') == shard_number then
		return id
	end
	return string.format('%s.%.0f-%s', lane_names[math.floor(seq / LANE)] or 'stray', seq % LANE, shard_number)
end

-- An envelope's lines, without those of these names, and its payload with the empty line before it.
local function task_parts(bytes, without)
	local lines, from = {}, 5
	while true do
		local stop = string.find(bytes, '\n', from, true)
		if not stop or stop == from then
			return lines, string.sub(bytes, from)
		end
		local line = string.sub(bytes, from, stop)
		if not without[string.match(line, '^([^:]*):') or ''] then
			lines[#lines + 1] = line
		end
		from = stop + 1
	end
end

-- As envelope_merge() of task/envelope.h: id and time of submission of the first, the longer `reply`, all else of the later.
local function envelope_merge(into, later, seq)
	local lines, payload = task_parts(later, { key = true, id = true, submitted = true, reply = true })
	local reply = math.max(whole(task_field(into, 'reply')) or 0, whole(task_field(later, 'reply')) or 0)
	local submitted = task_field(into, 'submitted')
	return 'qv1\nkey:' .. (string.match(into, '^qv1\nkey:([^\n]*)\n') or '') .. '\nid:' .. task_id(into, seq) .. '\n' ..
		(submitted and 'submitted:' .. submitted .. '\n' or '') .. (reply > 0 and string.format('reply:%.0f\n', reply) or '') ..
		table.concat(lines) .. payload
end

-- What order is kept for: the key, or the id.
local function task_key(bytes, seq)
	local key = string.match(bytes, '^qv1\nkey:([^\n]*)\n')
	if key and key ~= '' then
		return key
	end
	return task_id(bytes, seq)
end
