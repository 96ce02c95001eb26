-- get: KEYS[2]: the node.  → OK, changed, data, version, created, owner (all nil if there is no such node)
reap()
local node = redis.call('HMGET', KEYS[2], 'data', 'version', 'created', 'owner')
return { 'OK', changed, node[1], node[2], node[3], node[4] }
