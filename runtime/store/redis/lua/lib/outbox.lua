-- An entry of …outbox: target, number, lane, due, envelope; nil if it cannot be read.
local function entry_read(packed)
	local entry = record_read(packed, 'number', 'number', 'number', 'number', 'string')
	return entry and entry[2] > 0 and entry[3] <= 2 and entry or nil
end
