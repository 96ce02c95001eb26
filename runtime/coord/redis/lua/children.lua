#!lua flags=allow-oom
-- children: KEYS[2]: the node's children, KEYS[3]: the node.  → OK, changed, names, 1 if the node is there; or BROKEN,
-- changed, why
--include tree

reap()
if not is_kind(KEYS[2], 'set') then
	return { 'BROKEN', changed, KEYS[2] .. ' is not a set' }
end
return { 'OK', changed, redis.call('SMEMBERS', KEYS[2]), redis.call('EXISTS', KEYS[3]) }
