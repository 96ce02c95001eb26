-- Mailboxes.  KEYS: the messages, what is known of them.  The messages are pairs of a list: "NUMBER SIZE", then the bytes, so
-- that what was dealt with is removed without being read.  The other is a hash: last (number given), messages, bytes.  Both
-- are removed by Redis when their time is over.
local mail, box = KEYS[1], KEYS[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

for i, wanted in ipairs({ 'list', 'hash' }) do
	local is = redis.call('TYPE', KEYS[i]).ok
	if is ~= 'none' and is ~= wanted then
		error({ err = 'WRONGTYPE ' .. KEYS[i] .. ' is a ' .. is .. ', Quiver wants a ' .. wanted })
	end
end

-- What is stored may have been written by anybody: a whole number up to 2^53 - 1, in digits alone; else nil.
local function whole(text)
	local number = type(text) == 'string' and string.find(text, '^%d+$') and tonumber(text)
	return number and number <= 9007199254740991 and number or nil
end

local function bad(what)
	error({ err = 'BADVALUE ' .. box .. ': ' .. what .. ' cannot be read; DEL both keys of this mailbox, or wait until they expire' })
end

local known = redis.call('HMGET', box, 'last', 'messages', 'bytes')
local last, messages, bytes = whole(known[1] or '0') or bad('last'), whole(known[2] or '0') or bad('messages'),
	whole(known[3] or '0') or bad('bytes')
if redis.call('LLEN', mail) ~= 2 * messages then
	bad('messages')
end

-- The i-th message: number and size.
local function head_read(i)
	local number, size = string.match(redis.call('LINDEX', mail, 2 * i - 2) or '', '^(%d+) (%d+)$')
	return whole(number) or bad('a number'), whole(size) or bad('a size')
end
