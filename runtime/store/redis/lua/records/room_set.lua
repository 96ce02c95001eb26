#!lua flags=allow-oom
-- room_set: makes a room or changes what it keeps.  KEYS: see lib/room.lua.  ARGV: entries_max, bytes_max, age, the most
-- rooms, the most entries that it removes.  → 1, or 0: there are too many rooms
--include room_record
--include room

local room = room_get()
if not room and redis.call('HLEN', rooms) >= tonumber(ARGV[4]) then
	return 0
end
room = room or { last = 0, entries = 0, bytes = 0 }
room.entries_max, room.bytes_max, room.age = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
room_trim(room, 0, tonumber(ARGV[5]))
room_put(room)
return 1
