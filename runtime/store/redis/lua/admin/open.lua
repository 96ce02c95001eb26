#!lua flags=no-writes
-- open: what is recorded about the app.  KEYS: quiver:{APP}:app.
-- → schema, shards, coordination, features, max_members, id_layout, created; or nothing
-- A server that takes no writes (it is full, or lacks replicas) must still be looked at, and worked off.
local app = KEYS[1]
local is = redis.call('TYPE', app).ok
if is == 'none' then
	return {}
elseif is ~= 'hash' then
	return redis.error_reply('WRONGTYPE ' .. app .. ' is a ' .. is .. ', Quiver wants a hash')
end
local f = redis.call('HMGET', app, 'schema', 'shards', 'coordination', 'features', 'max_members', 'id_layout', 'created')
for i = 1, 7 do
	f[i] = f[i] or ''
end
return f
