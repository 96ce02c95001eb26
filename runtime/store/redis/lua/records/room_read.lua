#!lua flags=no-writes
-- room_read: entries of a room, from a number on.  KEYS: see lib/room.lua.  ARGV: from, the most, about how many bytes.
-- → 1 if there is such a room, last, entries, has_more, then per entry: number, at, bytes
--include room_record
--include room

local room = room_get()
if not room then
	redis.call('EXISTS', stream) -- it rings when it is made
	return { 0, 0, 0, 0 }
end
local max, room_bytes = tonumber(ARGV[2]), tonumber(ARGV[3])
local reply, count, bytes = { 1, room.last, room.entries, 0 }, 0, 0
local from = string.format('%.0f', math.max(tonumber(ARGV[1]), room.last - room.entries + 1))
while true do
	local some = redis.call('XRANGE', stream, from, '+', 'COUNT', '8')
	for _, entry in ipairs(some) do
		local number, when, text = entry_read(entry)
		if not number then
			error({ err = 'BADVALUE ' .. stream .. ': entry ' .. entry[1] .. ' is not one that Quiver has written; stop all hosts of the app, XDEL it, then quiver fsck --repair' })
		end
		if count == max or (count > 0 and bytes + #text > room_bytes) then
			reply[4] = 1
			return reply
		end
		count, bytes = count + 1, bytes + #text
		reply[#reply + 1] = number
		reply[#reply + 1] = when
		reply[#reply + 1] = text
		from = '(' .. entry[1]
	end
	if #some < 8 then
		return reply
	end
end
