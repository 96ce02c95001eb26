#!lua flags=no-writes
-- room_list: rooms of a shard, by name.  KEYS: …rooms.  ARGV: the name before, the most.
-- → 1 at the end, then per room: name, last, entries, bytes, entries_max, bytes_max, age; of one whose record is wrong zeros
local is = redis.call('TYPE', KEYS[1]).ok
if is ~= 'none' and is ~= 'hash' then
	return redis.error_reply('WRONGTYPE ' .. KEYS[1] .. ' is a ' .. is .. ', Quiver wants a hash')
end
--include room_record

local names = {}
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
	if name > ARGV[1] then
		names[#names + 1] = name
	end
end
table.sort(names)
local rows, max = { #names <= tonumber(ARGV[2]) and 1 or 0 }, tonumber(ARGV[2])
for i = 1, math.min(#names, max) do
	local r = room_read(redis.call('HGET', KEYS[1], names[i])) or
		{ last = 0, entries = 0, bytes = 0, entries_max = 0, bytes_max = 0, age = 0 }
	for _, value in ipairs({ names[i], r.last, r.entries, r.bytes, r.entries_max, r.bytes_max, r.age }) do
		rows[#rows + 1] = value
	end
end
return rows
