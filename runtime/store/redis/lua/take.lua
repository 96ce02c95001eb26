#!lua flags=allow-oom
-- take: follow-ups from another shard's outbox.  ARGV: source, packed entries, from the first that it still has on: those
-- before were taken.  Takes what is above the highest number taken; what it has already is passed over.  A gap says that
-- this server failed over and lost some that it had taken: the rest must not wait for them.  → the highest number taken,
-- or 0.  An entry that cannot be read becomes dead here
--include shard
--include note
--include task
--include dead
--include log
--include outbox

check_types('taken', 'high', 'normal', 'low', 'delayed', 'later', 'shard', 'dead', 'deadnumbers', 'deadids', 'deadgroups')
check_counts('last_dead', 'last_delayed')
local taken = whole(redis.call('HGET', at .. 'taken', ARGV[1])) or 0
for i = 2, #ARGV do
	local entry = entry_read(ARGV[i])
	if not entry then
		dead_put_bytes(3 * LANE + whole(redis.call('HGET', shard, 'last_dead') or '0') + 1, ARGV[i], nil, 'malformed',
			'it stood in an outbox and cannot be read')
	elseif entry[2] > taken then
		if entry[4] > now then
			delay(entry[3], entry[4], entry[5])
		else
			redis.call('RPUSH', lanes[entry[3]], entry[5])
		end
		taken = entry[2]
	end
end
if taken > 0 then
	redis.call('HSET', at .. 'taken', ARGV[1], string.format('%.0f', taken))
end
return taken
