#!lua flags=allow-oom
-- dead: requeues (0) or drops (1) dead tasks.  ARGV: verb, how many ids, the ids, then numbers.  Reads and checks all of
-- them before it writes.  → acted, numbers looked at, records that cannot be read, the highest number given, how many were
-- refused since they are too long to be requeued
--include shard
--include note
--include task
--include dead
--include log
--include claimed

check_types('shard', 'dead', 'deadnumbers', 'deadids', 'deadgroups', 'high', 'normal', 'low', 'notes')
local verb, ids = tonumber(ARGV[1]), tonumber(ARGV[2])
check_counts('high', 'normal', 'low', 'dropped', 'last_dead')
local last = bases()
local chosen, is_chosen, bytes, unreadable, refused = {}, {}, 0, 0, 0

-- A number without a record was requeued or dropped by somebody else.
local function choose(number)
	local record = number and not is_chosen[number] and redis.call('HGET', at .. 'dead', string.format('%.0f', number))
	if not record then
		return
	end
	local d = dead_read(record)
	if not d or not lanes[d[3]] then
		unreadable = unreadable + 1
		return
	end
	is_chosen[number] = true
	if verb == 0 and d[5] == 'too long' then
		refused = refused + 1 -- it would be so again
		return
	end
	chosen[#chosen + 1] = { number, d }
	bytes = bytes + #d[6]
end

-- Fresh budgets; history and checkpoint stay.
local function requeue(d)
	local n = note_read(d[7])
	n.attempts, n.crashes, n.interruptions, n.laters, n.suspect = 0, 0, 0, 0, 0
	note_event(n, 'requeued', '')
	append(d[3], d[6], note_write(n), last)
end

for i = 3, 2 + ids do
	local member = redis.call('ZRANGEBYLEX', at .. 'deadids', '[' .. ARGV[i] .. '\0', '(' .. ARGV[i] .. '\1', 'LIMIT', 0, 1)[1]
	choose(member and tonumber(string.sub(member, -16), 16))
end
local looked = 0
for i = 3 + ids, #ARGV do
	if looked > 0 and bytes >= 1048576 then
		break
	end
	choose(tonumber(ARGV[i]))
	looked = looked + 1
end
local highest = whole(redis.call('HGET', shard, 'last_dead') or '0')
for _, entry in ipairs(chosen) do
	local number, d = string.format('%.0f', entry[1]), entry[2]
	if verb == 0 then
		requeue(d)
	else
		redis.call('UNLINK', at .. 'long.' .. number)
		redis.call('HINCRBY', shard, 'dropped', 1)
	end
	redis.call('HDEL', at .. 'dead', number)
	group_count(d, -1)
	redis.call('ZREM', at .. 'deadnumbers', number)
	redis.call('ZREM', at .. 'deadids', d[1] .. '\0' .. hex(entry[1]))
end
return { #chosen, looked, unreadable, highest, refused }
