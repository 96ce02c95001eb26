#!lua flags=no-writes
-- reply: one task's outcome.  KEYS: …reply:ID.  → state, has_data, data, reason, note; nothing if it is not there yet
local packed = redis.call('GET', KEYS[1])
return packed and cmsgpack.unpack(packed) or {}
