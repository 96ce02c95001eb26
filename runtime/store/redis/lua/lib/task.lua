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

-- What order is kept for: the key, or the id.
local function task_key(bytes, seq)
	local key = string.match(bytes, '^qv1\nkey:([^\n]*)\n')
	if key and key ~= '' then
		return key
	end
	return task_id(bytes, seq)
end
