#!lua
-- room_append: entries for a room, which is made if it is not there.  KEYS: see lib/room.lua.  ARGV: source ('': none), its
-- number, entries_max, bytes_max and age of a new room, the most rooms, the most sources, the number
-- that the first has to get (0: any), 2 if each entry is followed by its time, else 1; then the entries.
-- → the first one's number, 0: too many rooms; and 1 if it is a repeat, 2 if the room goes on from another number
--include room_record
--include room

local source, source_number, begin, values = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[8]), tonumber(ARGV[9])
local room = room_get()
if not room and redis.call('HLEN', rooms) >= tonumber(ARGV[6]) then
	return { 0, 0 }
end
room = room or { last = 0, entries = 0, bytes = 0, entries_max = tonumber(ARGV[3]), bytes_max = tonumber(ARGV[4]),
	age = tonumber(ARGV[5]) }

-- Number, first and when of a source's last append; nothing if it cannot be read.
local function source_read(record)
	local number, first, when = string.match(record or '', '^(%d+) (%d+) (%d+)$')
	number, first, when = digits_read(number), digits_read(first), digits_read(when)
	if number and first and when then
		return number, first, when
	end
end

-- The source that was silent longest, if there are as many as may be.  One that cannot be read goes first.
local function oldest_source()
	local all = redis.call('HGETALL', sources)
	if #all / 2 < tonumber(ARGV[7]) then
		return nil
	end
	local oldest, since
	for i = 1, #all, 2 do
		local _, _, when = source_read(all[i + 1])
		when = when or -1
		if all[i] ~= source and (not since or when < since or (when == since and all[i] > oldest)) then
			oldest, since = all[i], when
		end
	end
	return oldest
end

local forgotten
if source ~= '' then
	local record = redis.call('HGET', sources, source)
	local highest, first = source_read(record)
	if record and not highest then
		error({ err = 'BADVALUE ' .. sources .. ': source ' .. source .. ' cannot be read; HDEL it' })
	end
	if highest and source_number <= highest then
		return { source_number == highest and math.min(first, room.last) or 0, 1 }
	end
	forgotten = not record and oldest_source()
end
local is_unused = room.last == 0
if begin > 0 and is_unused then
	room.last = begin - 1
end
if begin > 0 and (begin ~= room.last + 1 or (#ARGV == 9 and not is_unused)) then
	return { 0, 2 }
end
if redis.call('EXISTS', stream) == 1 then
	local info = redis.call('XINFO', 'STREAM', stream)
	for i = 1, #info, 2 do
		if info[i] == 'last-generated-id' and (digits_read(string.match(info[i + 1], '^(%d+)%-')) or NUMBER_MAX) > room.last then
			error({ err = 'BADVALUE ' .. rooms .. ': the record of room ' .. name .. ' is behind its entries; stop all hosts of the app, then quiver fsck --repair' })
		end
	end
end

local first = room.last + 1
for i = 10, #ARGV, values do
	local when = values == 2 and math.min(tonumber(ARGV[i + 1]), now) or now
	room.last, room.entries, room.bytes = room.last + 1, room.entries + 1, room.bytes + #ARGV[i]
	redis.call('XADD', stream, string.format('%.0f-%.0f', room.last, when), 'm', ARGV[i])
end
if forgotten then
	redis.call('HDEL', sources, forgotten)
end
if source ~= '' then
	redis.call('HSET', sources, source, string.format('%.0f %.0f %.0f', source_number, first, now))
end
-- More goes than comes, so that a room whose limits were lowered gets there.
room_trim(room, 0, 2 * (#ARGV - 9) / values + 16)
room_put(room)
return { first, 0 }
