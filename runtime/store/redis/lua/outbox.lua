#!lua flags=no-writes
-- outbox: what waits for other shards.  ARGV: lease.  → base, born, then per entry: target, number, the packed entry
--include shard

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('outbox', 'sent')
local rows = { check_numbers('outbox_base')[1], redis.call('HGET', at .. 'sent', 'born') or '' }
local bytes = 0
for from = 0, 255, 16 do
	local some = redis.call('LRANGE', at .. 'outbox', from, from + 15)
	for _, packed in ipairs(some) do
		local entry = record_read(packed, 'number', 'number', 'number', 'number', 'string')
		if not entry then
			-- What is before it can go; it must not be forgotten with them.
			if #rows > 2 then
				return rows
			end
			error({ err = 'CORRUPT ' .. at .. 'outbox: its first entry cannot be read' })
		end
		rows[#rows + 1] = entry[1]
		rows[#rows + 1] = entry[2]
		rows[#rows + 1] = packed
		bytes = bytes + #packed
	end
	if #some < 16 or bytes >= 1048576 then
		break
	end
end
return rows
