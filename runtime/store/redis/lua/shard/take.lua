#!lua flags=allow-oom
-- take: what other shards' outboxes have for this one.  ARGV: source, packed entries, from the first that it still has on:
-- those before were taken.  Takes what is above the highest number taken; what it has already is passed over.  A gap says
-- that this server failed over and lost some that it had taken: the rest must not wait for them.  An entry that cannot be
-- read becomes dead here.  One of a kind that this script does not know is kept for one that does, and counts as taken.
-- → the highest number taken, or 0; 1 if there is no room to keep more; the kinds that were kept
--include shard
--include note
--include task
--include dead
--include log
--include outbox
--include sources

local source, kept, KEPT_MAX = 'outbox ' .. ARGV[1], at .. 'kept', 1024
check_types('sources', 'kept', 'high', 'normal', 'low', 'delayed', 'later', 'shard', 'dead', 'deadnumbers', 'deadids', 'deadgroups')
check_counts('last_dead', 'last_delayed')
local taken = source_taken(source) or 0
local kept_count = redis.call('LLEN', kept)

-- What an entry of each kind does.
local KINDS = {
	task = function(entry)
		if entry[4] > now then
			delay(entry[3], entry[4], entry[5])
		else
			redis.call('RPUSH', lanes[entry[3]], entry[5])
		end
	end,
}

-- What was kept and is known by now comes first: it came before.
for _, record in ipairs(kept_count > 0 and redis.call('LRANGE', kept, 0, 63) or {}) do
	local entry = kept_read(record)
	if entry and KINDS[entry[6]] then
		KINDS[entry[6]](entry)
		redis.call('LREM', kept, 1, record)
		kept_count = kept_count - 1
	end
end

local kinds, is_full = {}, 0
for i = 2, #ARGV do
	local entry = entry_read(ARGV[i])
	if not entry then
		dead_put_bytes(3 * LANE + whole(redis.call('HGET', shard, 'last_dead') or '0') + 1, ARGV[i], nil, 'malformed',
			'it stood in an outbox and cannot be read')
	elseif entry[2] > taken and KINDS[entry[6]] then
		KINDS[entry[6]](entry)
		taken = entry[2]
	elseif entry[2] > taken and kept_count >= KEPT_MAX then
		is_full = 1
		break
	elseif entry[2] > taken then
		redis.call('RPUSH', kept, cmsgpack.pack({ source, ARGV[i] }))
		kinds[#kinds + 1], kept_count, taken = entry[6], kept_count + 1, entry[2]
	end
end
if taken > 0 then
	source_set(source, taken)
end
return { taken, is_full, kinds }
