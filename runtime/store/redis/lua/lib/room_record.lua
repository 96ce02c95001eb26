-- What is stored may have been written by anybody: a whole number up to 2^53 - 1, in digits alone; else nil.
local NUMBER_MAX = 9007199254740991
local function digits_read(text)
	local number = type(text) == 'string' and string.find(text, '^%d+$') and tonumber(text)
	return number and number <= NUMBER_MAX and number or nil
end

-- A room's record, as a table; nil if it cannot be read.
local function room_read(text)
	local last, entries, bytes, entries_max, bytes_max, age = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
	local room = { last = digits_read(last), entries = digits_read(entries), bytes = digits_read(bytes), entries_max = digits_read(entries_max),
		bytes_max = digits_read(bytes_max), age = digits_read(age) }
	return room.last and room.entries and room.bytes and room.entries_max and room.bytes_max and room.age and
		room.entries <= room.last and room.entries_max > 0 and room.bytes_max > 0 and room.age > 0 and room or nil
end

local function room_write(room)
	return string.format('%.0f %.0f %.0f %.0f %.0f %.0f', room.last, room.entries, room.bytes, room.entries_max, room.bytes_max,
		room.age)
end
