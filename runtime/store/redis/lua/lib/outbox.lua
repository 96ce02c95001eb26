-- An entry of …outbox: target, number, lane, due, bytes, kind.  What the values between number and kind mean is the kind's
-- own; of a task they are these, and it needs no kind.  nil if it cannot be read.
local function entry_read(packed)
	local entry = record_read(packed, 'number', 'number')
	if not entry or entry[2] <= 0 then
		return nil
	end
	entry[6] = entry[6] or 'task'
	if entry[6] == 'task' then
		entry = record_read(packed, 'number', 'number', 'number', 'number', 'string')
		if not entry or entry[3] > 2 then
			return nil
		end
		entry[6] = 'task'
	end
	return type(entry[6]) == 'string' and string.find(entry[6], '^%l[%l%d_]*$') and #entry[6] <= 31 and entry or nil
end

-- …kept: entries of kinds that whoever took them did not know, with their source: source, packed entry.
local function kept_read(record)
	local kept = record_read(record, 'string', 'string')
	local entry = kept and entry_read(kept[2])
	return entry, kept and kept[1]
end
