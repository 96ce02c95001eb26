#!lua flags=no-writes
-- outbox: what waits for other shards.  ARGV: lease.  → base, born, then per entry: target, number, the packed entry
--include shard

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
local rows = { tonumber(redis.call('HGET', shard, 'outbox_base') or 0), redis.call('HGET', at .. 'sent', 'born') or '' }
local bytes = 0
for from = 0, 255, 16 do
	local some = redis.call('LRANGE', at .. 'outbox', from, from + 15)
	for _, packed in ipairs(some) do
		local entry = cmsgpack.unpack(packed)
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
