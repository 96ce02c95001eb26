#!lua
-- import: a chunk of tasks as another store had them.  ARGV: source, the chunk's number (0: only looks), the number of
-- the chunk before, then per task state (0 queued, 1 delayed, 4 dead), lane, envelope, note, due_in or at, id, handler,
-- reason.  Takes what is above the highest number taken from the source.  → the highest number before; 1 if the chunk
-- was put in, 0 if not
--include shard
--include note
--include task
--include dead
--include log

TYPES.imports = 'hash'
check_types('shard', 'high', 'normal', 'low', 'delayed', 'later', 'notes', 'dead', 'deadnumbers', 'deadids', 'deadgroups', 'imports')
local imports, source, number, after = at .. 'imports', ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local SOURCES_MAX = 64

-- A record is the highest number taken, and when.
local function import_read(name, record)
	local taken, when = string.match(record, '^(%d+) (%d+)$')
	taken, when = whole(taken), whole(when)
	if not taken or not when then
		error({ err = string.format('BADVALUE %s: %s is "%s"', imports, name, (string.gsub(string.sub(record, 1, 64), '%c', '?'))) })
	end
	return taken, when
end

-- The source that put something in longest ago, if there are as many as may be.
local function oldest_source()
	if redis.call('HLEN', imports) < SOURCES_MAX then
		return nil
	end
	local all = redis.call('HGETALL', imports)
	local oldest, since
	for i = 1, #all, 2 do
		local _, when = import_read(all[i], all[i + 1])
		if not since or when < since or (when == since and all[i] < oldest) then
			oldest, since = all[i], when
		end
	end
	return oldest
end

local known = redis.call('HGET', imports, source)
local taken = known and import_read(source, known) or 0
if number <= taken or taken < after then
	return { taken, 0 }
end
check_counts('high', 'normal', 'low', 'last_dead', 'last_delayed')
local forgotten = not known and oldest_source()
local last = lasts()
if forgotten then
	redis.call('HDEL', imports, forgotten)
end
redis.call('HSET', imports, source, string.format('%.0f %.0f', number, now))
for i = 4, #ARGV, 8 do
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
return { taken, 1 }
