-- children: KEYS[2]: the node's children, KEYS[3]: the node.  → OK, changed, names, 1 if the node is there
reap()
return { 'OK', changed, redis.call('SMEMBERS', KEYS[2]), redis.call('EXISTS', KEYS[3]) }
