-- Who puts numbered things into this shard: the outboxes of other shards, by the name "outbox SHARD.BORN", and outside sources
-- (a dump that is loaded, a relay) by a name of their own, which has no space.  …sources: name → the highest number taken
-- and when.  Only higher ones are taken: that is what makes a repeat harmless.
local sources = at .. 'sources'

local function source_read(name, record)
	local taken, when = string.match(record, '^(%d+) (%d+)$')
	taken, when = whole(taken), whole(when)
	if not taken or not when then
		error({ err = string.format('BADVALUE %s: %s is "%s", not "NUMBER TIME"; set NUMBER to the highest that was taken', sources,
			name, (string.gsub(string.sub(record, 1, 64), '%c', '?'))) })
	end
	return taken, when
end

-- The highest number taken from a source; nil: it is not known here.
local function source_taken(name)
	local record = redis.call('HGET', sources, name)
	return record and source_read(name, record)
end

local function source_set(name, number)
	redis.call('HSET', sources, name, string.format('%.0f %.0f', number, now))
end

-- The outside source that was silent longest, if there are as many as a shard remembers.  Outboxes are never forgotten.
local function source_oldest(max)
	local all, count = redis.call('HGETALL', sources), 0
	local oldest, since
	for i = 1, #all, 2 do
		if not string.find(all[i], ' ', 1, true) then
			local _, when = source_read(all[i], all[i + 1])
			count = count + 1
			if not since or when < since or (when == since and all[i] < oldest) then
				oldest, since = all[i], when
			end
		end
	end
	return count >= max and oldest or nil
end
