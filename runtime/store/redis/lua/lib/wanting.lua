-- Which hosts want help.  KEYS: the records, when each ends, and a count that grows with each that is set: who lists them has
-- read it, and is rung.  A record: "HANDLER NONCE" → "TASKS SINCE".
local wanting, wanting_ends, wanting_set = KEYS[1], KEYS[2], KEYS[3]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

for i, wanted in ipairs({ 'hash', 'zset', 'string' }) do
	local is = redis.call('TYPE', KEYS[i]).ok
	if is ~= 'none' and is ~= wanted then
		error({ err = 'WRONGTYPE ' .. KEYS[i] .. ' is a ' .. is .. ', Quiver wants a ' .. wanted })
	end
end

-- Tasks and since; nothing if it cannot be read.
local function wanting_read(record)
	local tasks, since = string.match(record or '', '^(%d+) (%d+)$')
	if tasks and #tasks <= 15 and #since <= 15 then
		return tonumber(tasks), tonumber(since)
	end
end
