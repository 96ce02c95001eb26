#!lua flags=no-writes
-- dead_groups: how many of the dead have the same handler, reason and first line of the error.  → per group: handler, reason,
-- error, tasks
--include shard

local rows = {}
local all = redis.call('HGETALL', at .. 'deadgroups')
for i = 1, #all, 2 do
	local handler, reason, line = string.match(all[i], '^([^%z]*)%z([^%z]*)%z([^%z]*)$')
	rows[#rows + 1] = handler or ''
	rows[#rows + 1] = reason or ''
	rows[#rows + 1] = line or ''
	rows[#rows + 1] = whole(all[i + 1]) or 0
	if #rows == 4 * 256 then
		break
	end
end
return rows
