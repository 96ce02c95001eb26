#!lua
-- post: a message for one host.  KEYS: see lib/mail.lua.  ARGV: bytes, keep_ms, the most messages, the most bytes.
-- → its number; or 0, messages and bytes of a mailbox that is full
--include mail

if messages >= tonumber(ARGV[3]) or bytes + #ARGV[1] > tonumber(ARGV[4]) then
	return { 0, messages, bytes }
end
-- Not below the time: a mailbox that was removed and is there again must not give numbers that its reader has dealt with.
local number = math.max(last + 1, clock[1] * 1000000 + clock[2])
redis.call('RPUSH', mail, string.format('%.0f %d', number, #ARGV[1]), ARGV[1])
redis.call('HSET', box, 'last', string.format('%.0f', number), 'messages', messages + 1, 'bytes', bytes + #ARGV[1])
-- Redis removes a key when its time has passed, one millisecond after it is there.
local till = string.format('%.0f', now + ARGV[2] - 1)
redis.call('PEXPIREAT', mail, till)
redis.call('PEXPIREAT', box, till)
return { number }
