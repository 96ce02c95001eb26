#!lua flags=allow-oom
-- room_delete: removes a room with all that is in it, also one whose record is wrong.  KEYS: see lib/room.lua.
-- → 1, or 0: there is no such room
--include room_record
--include room

if redis.call('HDEL', rooms, name) == 0 then
	return 0
end
redis.call('UNLINK', stream, sources)
return 1
