-- Rooms.  KEYS: the room's entries, a stream whose ids are NUMBER-AT; a reader that has read it is rung by the next append.
-- …rooms: name → "LAST ENTRIES BYTES ENTRIES_MAX BYTES_MAX AGE".  …roomsources:NAME: source → "NUMBER FIRST AT".
-- Numbers follow on each other, so the first that is there is LAST - ENTRIES + 1.
local stream = KEYS[1]
local at, name = string.match(stream, '^(quiver:{[^}]*}:)room:(.*)$')
local rooms, sources = at .. 'rooms', at .. 'roomsources:' .. name
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

for key, wanted in pairs({ [stream] = 'stream', [rooms] = 'hash', [sources] = 'hash' }) do
	local is = redis.call('TYPE', key).ok
	if is ~= 'none' and is ~= wanted then
		error({ err = 'WRONGTYPE ' .. key .. ' is a ' .. is .. ', Quiver wants a ' .. wanted })
	end
end

-- Number, time and bytes of an entry; nil if it is none of a room's.
local function entry_read(entry)
	local number, when = string.match(entry[1], '^(%d+)%-(%d+)$')
	number, when = digits_read(number), digits_read(when)
	if number and when and #entry[2] == 2 then
		return number, when, entry[2][2]
	end
end

-- The room; nil: there is none.
local function room_get()
	local text = redis.call('HGET', rooms, name)
	local room = text and room_read(text)
	if text and (not room or redis.call('XLEN', stream) ~= room.entries) then
		error({ err = 'BADVALUE ' .. rooms .. ': the record of room ' .. name .. ' is wrong; stop all hosts of the app, then quiver fsck --repair' })
	end
	return room
end

local function room_put(room)
	redis.call('HSET', rooms, name, room_write(room))
end

local function must_go(room, number, when, through)
	return number <= through or when + room.age <= now or
		(room.entries > 1 and (room.entries > room.entries_max or room.bytes > room.bytes_max))
end

-- Removes the oldest, at most `max`: those up to `through`, and those beyond the limits.  Returns whether there is more of
-- that.  Each is read once more for its size, so a call reads about a MiB and goes on with the next.
local function room_trim(room, through, max)
	local gone, read, last_gone, is_done = 0, 0, nil, false
	local from = '-'
	while not is_done and room.entries > 0 do
		local some = redis.call('XRANGE', stream, from, '+', 'COUNT', '16')
		for _, entry in ipairs(some) do
			local number, when, bytes = entry_read(entry)
			if not number or not must_go(room, number, when, through) then
				is_done = true
				break
			end
			if gone == max or read >= 1048576 then
				is_done = 'more'
				break
			end
			gone, read, last_gone = gone + 1, read + #bytes, number
			room.entries, room.bytes = room.entries - 1, math.max(0, room.bytes - #bytes)
			from = '(' .. entry[1]
		end
		if #some == 0 then
			break
		end
	end
	if last_gone then
		redis.call('XTRIM', stream, 'MINID', '=', string.format('%.0f', last_gone + 1))
	end
	return is_done == 'more'
end
