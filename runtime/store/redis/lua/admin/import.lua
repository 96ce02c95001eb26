#!lua
-- import: a chunk of tasks as another store had them.  ARGV: source, the chunk's number (0: only looks), the number of
-- the chunk before, how many idempotency names, of each name, left, digest, id; then per task state (0 queued, 1 delayed,
-- 4 dead), lane, envelope, note, due_in or at, id, handler, reason.  Takes what is above the highest number taken from the
-- source.  → the highest number before; 1 if the chunk was put in, 0 if not; under how many names another task is remembered
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include sources
--include idempotency

check_types('shard', 'high', 'normal', 'low', 'delayed', 'later', 'notes', 'dead', 'deadnumbers', 'deadids', 'deadgroups', 'sources',
	'idempotent', 'idempotentends')
local source, number, after, SOURCES_MAX = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), 64
local known = source_taken(source)
local taken = known or 0
if number <= taken or taken < after then
	return { taken, 0, 0 }
end
check_counts('high', 'normal', 'low', 'last_dead', 'last_delayed')
local forgotten = not known and source_oldest(SOURCES_MAX)
local last = bases()
if forgotten then
	redis.call('HDEL', sources, forgotten)
end
source_set(source, number)
local tasks_from, left = 5 + 4 * tonumber(ARGV[4]), 0
for i = 5, tasks_from - 1, 4 do
	local name, keep_ms, digest, id = ARGV[i], tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3]
	local there = idempotent_look(name)
	if not there then
		idempotent_put(name, keep_ms, digest, id)
	elseif there[1] ~= id or there[2] ~= digest then
		left = left + 1
	end
end
for i = tasks_from, #ARGV, 8 do
	local state, lane, bytes, note, when, id = tonumber(ARGV[i]), tonumber(ARGV[i + 1]), ARGV[i + 2], ARGV[i + 3],
		tonumber(ARGV[i + 4]), ARGV[i + 5]
	if state == 0 then
		append(lane, bytes, note, last)
	elseif state == 1 then
		delay(lane, now + when, bytes, note)
	else
		local d = { id, ARGV[i + 6], lane, when, ARGV[i + 7], bytes, note }
		local dead = record_add('last_dead', 'dead', 10, decimal, cmsgpack.pack(d))
		group_count(d, 1)
		redis.call('ZADD', at .. 'deadnumbers', dead, dead)
		redis.call('ZADD', at .. 'deadids', 0, id .. '\0' .. hex(dead))
	end
end
return { taken, 1, left }
