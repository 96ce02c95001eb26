#!lua flags=allow-oom
-- repair: the same as fsck, and mends what it finds where that loses nothing.  Not while somebody owns the shard.
-- ARGV: part, cursor.  → as fsck, with how many of the problems were mended; or 'HELD'
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include key
--include marks
--include lease
--include idempotency
--include outbox
--include room_record
--include schedule
local mends = true
--include proof

local lease = redis.call('HMGET', shard, 'lease', 'until', 'ttl')
if string.sub(lease[1] or '', 1, 4) == 'held' and left_ms(lease[2], lease[3]) > 0 then
	return 'HELD'
end
local answer = prove()
keys_save()
return answer
