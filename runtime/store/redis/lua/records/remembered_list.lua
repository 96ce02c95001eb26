#!lua flags=no-writes
-- remembered_list: submits that may be repeated, by when that is over.  ARGV: the name before ('': none), the most.
-- → 1 at the end, then per record: name, left, digest, id; of one that cannot be read '' instead of the last two
--include shard
--include idempotency

check_types('idempotent', 'idempotentends')
-- One that is gone was over, and so are all before it.
local before = ARGV[1] ~= '' and redis.call('ZRANK', idempotent_ends, ARGV[1])
local from, max = before and before + 1 or redis.call('ZCOUNT', idempotent_ends, '-inf', now), tonumber(ARGV[2])
local names = redis.call('ZRANGE', idempotent_ends, from, from + max)
local rows = { #names <= max and 1 or 0 }
for i = 1, math.min(#names, max) do
	local till, digest, id = idempotent_read(redis.call('HGET', idempotent, names[i]) or '')
	for _, value in ipairs({ names[i], till and math.max(0, till - now) or 0, digest or '', id or '' }) do
		rows[#rows + 1] = value
	end
end
return rows
