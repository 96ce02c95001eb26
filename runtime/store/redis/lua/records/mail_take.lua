#!lua flags=allow-oom
-- mail_take: removes what was dealt with, returns what is next.  KEYS: see lib/mail.lua.  ARGV: the last number dealt with,
-- the most messages, about how many bytes.  → has_more, then per message its number and its bytes
--include mail

local after, max, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local gone, gone_bytes = 0, 0
-- A number that this mailbox has not given is of one before it.
if after <= last then
	while gone < messages do
		local number, size = head_read(gone + 1)
		if number > after then
			break
		end
		gone, gone_bytes = gone + 1, gone_bytes + size
	end
end
local numbers, count, taken = {}, 0, 0
while gone + count < messages and count < max do
	local number, size = head_read(gone + count + 1)
	if count > 0 and taken + size > room then
		break
	end
	count, taken = count + 1, taken + size
	numbers[count] = number
end
if gone > 0 then
	redis.call('LTRIM', mail, 2 * gone, -1)
	redis.call('HSET', box, 'messages', messages - gone, 'bytes', math.max(0, bytes - gone_bytes))
end
-- The last command reads the list, so that the next post rings.
local reply = { messages > gone + count and 1 or 0 }
for i, text in ipairs(redis.call('LRANGE', mail, 0, math.max(0, 2 * count - 1))) do
	if i <= 2 * count then
		reply[#reply + 1] = i % 2 == 1 and numbers[(i + 1) / 2] or text
	end
end
return reply
