#!lua flags=allow-oom
-- key_act: hold (1), unhold (2), retry now (3), skip the head (4).  ARGV: verb, key, reason.
-- → 0 (done), 1 (the owner is told), -1 (neither parked nor held, nor does it wait for a name)
--include shard
--include note
--include task
--include dead
--include log
--include key

check_types('shard', 'control', 'keys', 'due', 'named', 'side', 'parked', 'parkedlanes', 'notes', 'dead', 'deadnumbers', 'deadids', 'deadgroups')
check_counts('high', 'normal', 'low', 'last_dead')
local verb, name, reason = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local fields = redis.call('HMGET', shard, 'lease', 'returned')
local is_held = string.sub(fields[1] or '', 1, 5) == 'held '
-- A hold may be on its way to the owner, so that the key is not held yet.
local may_come = is_held and redis.call('LLEN', control) > (whole(fields[2]) or 0)
local k = key_get(name)
if verb ~= 1 and not may_come and (not k or k.state == 'waiting') then
	return -1
end
if is_held then
	redis.call('RPUSH', control, cmsgpack.pack({ verb, name, reason, '', 0 }))
	return 1
end
control_apply(verb, name, reason)
keys_save()
return 0
