#!lua
-- schedule_set: changes one schedule.  ARGV: verb (0 put, 1 pause, 2 resume, 3 delete, 4 load), name, version, definition,
-- next (0: none), how many a shard may have, of load: state, last, fired, skipped.  → 0 (changed), 1 (the same), 2 (stale), 3 (there is none), 4 (too many), 5 (unreadable)
--include shard
--include schedule

check_types('shard', 'control', 'schedules', 'scheduled')
local verb, name, version, definition, next_ms, max = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV[4], tonumber(ARGV[5]),
	tonumber(ARGV[6])
local PUT, PAUSE, DELETE, LOAD = 0, 1, 3, 4
local s = schedule_get(name)
if s == false then
	return 5
end
local is_gone = not s or s[1] == DELETED
if verb == PUT or verb == LOAD then
	if s and version <= s[2] then
		return version == s[2] and not is_gone and definition == s[8] and 1 or 2
	end
elseif verb == DELETE then
	if s and version < s[2] then
		return 2
	elseif s and is_gone then
		return 1
	end
elseif is_gone then
	return 3
elseif s[1] == (verb == PAUSE and PAUSED or ACTIVE) then
	return 1
end
if not s and redis.call('HLEN', schedules) >= max then
	-- Those that were deleted make room.
	local gone = {}
	local all = redis.call('HGETALL', schedules)
	for i = 1, #all, 2 do
		local other = schedule_unpack(all[i + 1])
		if other and other[1] == DELETED then
			gone[#gone + 1] = all[i]
		end
	end
	if #gone == 0 then
		return 4
	end
	redis.call('HDEL', schedules, unpack(gone))
end
s = s or { DELETED, version, 0, 0, 0, 0, 0, '' }
if verb == PUT then
	-- The same definition again keeps its time: it may be due.
	if is_gone or definition ~= s[8] then
		s[3] = next_ms
	end
	s[1], s[2], s[8] = is_gone and ACTIVE or s[1], version, definition
elseif verb == LOAD then
	s = { tonumber(ARGV[7]), version, next_ms, tonumber(ARGV[8]), 0, tonumber(ARGV[9]), tonumber(ARGV[10]), definition }
elseif verb == DELETE then
	s[1], s[2], s[3], s[8] = DELETED, version, 0, ''
elseif verb == PAUSE then
	s[1] = PAUSED
else
	s[1], s[3] = ACTIVE, next_ms
end
schedule_put(name, s)
if string.sub(redis.call('HGET', shard, 'lease') or '', 1, 5) == 'held ' then
	redis.call('RPUSH', control, cmsgpack.pack({ 5, name, '', '', 0 }))
end
return 0
