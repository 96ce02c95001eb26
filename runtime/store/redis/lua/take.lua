#!lua flags=allow-oom
-- take: follow-ups from another shard's outbox.  ARGV: source, packed entries, from the first that it still has on: those
-- before were taken.  Takes what is above the highest number taken; what it has already is passed over.  A gap says that
-- this server failed over and lost some that it had taken: the rest must not wait for them.  → the highest number taken
--include shard
--include log

check_types('taken', 'high', 'normal', 'low', 'delayed', 'later', 'shard')
check_numbers('last_delayed')
local taken = tonumber(redis.call('HGET', at .. 'taken', ARGV[1]) or -1)
if not taken then
	error({ err = 'CORRUPT ' .. at .. 'taken: its field ' .. ARGV[1] .. ' is no number' })
end
local entries = {}
for i = 2, #ARGV do
	local entry = record_read(ARGV[i], 'number', 'number', 'number', 'number', 'string')
	if not entry or not lanes[entry[3]] then
		error({ err = 'CORRUPT an entry of the outbox for ' .. shard .. ' cannot be read' })
	end
	entries[i - 1] = entry
end
for _, entry in ipairs(entries) do
	local number, lane, due, bytes = entry[2], entry[3], entry[4], entry[5]
	if number > taken then
		if due > now then
			delay(lane, due, bytes)
		else
			redis.call('RPUSH', lanes[lane], bytes)
		end
		taken = number
	end
end
if taken >= 0 then
	redis.call('HSET', at .. 'taken', ARGV[1], string.format('%.0f', taken))
end
return taken
