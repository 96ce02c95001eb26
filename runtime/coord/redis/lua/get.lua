#!lua flags=allow-oom
-- get: KEYS[2]: the node.  → OK, changed, data, version, created, owner (all nil if there is no such node); or BROKEN,
-- changed, why
--include tree

reap()
if not is_kind(KEYS[2], 'hash') then
	return { 'BROKEN', changed, KEYS[2] .. ' is not a hash' }
end
local node = redis.call('HMGET', KEYS[2], 'data', 'version', 'created', 'owner')
local why = check_node(KEYS[2], node[3], node[2], node[4])
if why then
	return { 'BROKEN', changed, why }
end
return { 'OK', changed, node[1], node[2], node[3], node[4] }
