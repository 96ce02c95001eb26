#!lua flags=no-writes
-- keys: those that are not free.  ARGV: key ('': a page), cursor, page, when the app was made (0: not known).
-- → cursor, is_end, per key: key, state (0 free, 1 waiting, 2 parked, 3 held, 4 named), since, tasks, due_in, reason, head's id,
-- its age, the name that it waits for
--include shard
--include note
--include task
--include dead
--include log
--include key

local STATES = { waiting = 1, parked = 2, held = 3, named = 4 }
local rows = {}
-- No task is older than the app, whatever its producer says.
local created = tonumber(ARGV[4]) < now and tonumber(ARGV[4]) or 0

local function show(name)
	local k = key_get(name)
	local member = k and side_members(k, 1)[1]
	local bytes = member and redis.call('HGET', parked, side_field(member))
	local head = bytes and task_id(bytes, tonumber(side_field(member))) or ''
	local submitted = bytes and whole(task_field(bytes, 'submitted')) or 0
	local age = submitted > 0 and math.max(0, now - math.max(submitted, created)) or 0
	if k then
		rows[#rows + 1] = { name, STATES[k.state], k.since, k.tasks, k.state == 'held' and 0 or math.max(0, k.due - now),
			k.reason, head, age, k.waits or '' }
	else
		rows[#rows + 1] = { name, 0, 0, 0, 0, '', '', 0, '' }
	end
end

if ARGV[1] ~= '' then
	show(ARGV[1])
	return { 0, 1, rows }
end
local from, page = tonumber(ARGV[2]), tonumber(ARGV[3])
for _, name in ipairs(redis.call('ZRANGE', due_keys, from, from + page - 1)) do
	show(name)
end
return { from + #rows, #rows < page and 1 or 0, rows }
