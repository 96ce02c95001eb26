#!lua flags=allow-oom
-- take: follow-ups from another shard's outbox.  ARGV: source, packed entries.  Takes only what follows on the highest
-- number taken; what it has already is passed over.  A source that it does not know may begin anywhere: a wiped target
-- does not stall its sources.  → the highest number taken
--include shard
--include log

check_types('taken', 'high', 'normal', 'low', 'delayed', 'later', 'shard')
local taken = tonumber(redis.call('HGET', at .. 'taken', ARGV[1]) or -1)
for i = 2, #ARGV do
	local entry = cmsgpack.unpack(ARGV[i])
	local number, lane, due, bytes = entry[2], entry[3], entry[4], entry[5]
	if taken < 0 or number == taken + 1 then
		if due > now then
			delay(lane, due, bytes)
		else
			redis.call('RPUSH', lanes[lane], bytes)
		end
		taken = number
	elseif number > taken then
		break
	end
end
if taken >= 0 then
	redis.call('HSET', at .. 'taken', ARGV[1], taken)
end
return taken
