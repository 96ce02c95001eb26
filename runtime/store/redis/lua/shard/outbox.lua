#!lua flags=no-writes
-- outbox: what waits for other shards.  ARGV: lease.  → base, born, then per entry: target, number, the packed entry
--include shard
--include task
--include outbox

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('outbox', 'sent')
local rows = { check_counts('outbox_base').outbox_base, redis.call('HGET', at .. 'sent', 'born') or '' }
local bytes = 0
for from = 0, 255, 16 do
	local some = redis.call('LRANGE', at .. 'outbox', from, from + 15)
	for _, packed in ipairs(some) do
		-- What cannot be read goes nowhere else: this shard takes it itself, among its dead.
		local entry = entry_read(packed)
		rows[#rows + 1] = entry and entry[1] or tonumber(shard_number)
		rows[#rows + 1] = entry and entry[2] or 0
		rows[#rows + 1] = packed
		bytes = bytes + #packed
	end
	if #some < 16 or bytes >= 1048576 then
		break
	end
end
return rows
