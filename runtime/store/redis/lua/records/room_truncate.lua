#!lua flags=allow-oom
-- room_truncate: removes entries up to a number, and those beyond the limits.  KEYS: see lib/room.lua.  ARGV: through, the
-- most.  → 1 if there is such a room, the first number that is there, has_more
--include room_record
--include room

local room = room_get()
if not room then
	return { 0, 1, 0 }
end
local has_more = room_trim(room, tonumber(ARGV[1]), tonumber(ARGV[2]))
room_put(room)
return { 1, room.last - room.entries + 1, has_more and 1 or 0 }
