#!lua flags=no-writes
-- reply: one task's outcome.  KEYS: …reply:ID.  → state, has_data, data, reason, note; nothing if it is not there yet
local packed = redis.call('GET', KEYS[1])
if not packed then
	return {}
end
local is_read, reply = pcall(cmsgpack.unpack, packed)
if not is_read or type(reply) ~= 'table' then
	return redis.error_reply('BADVALUE ' .. KEYS[1] .. ' is not an outcome that Quiver has written; DEL it')
end
return reply
