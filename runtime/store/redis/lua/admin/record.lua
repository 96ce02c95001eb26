#!lua flags=allow-oom
-- record: records the app if it is not there, and what is missing in its record.  KEYS: quiver:{APP}:app.
-- ARGV: schema, shards, coordination ('': not said), the coordination that it replaces, features, max_members ('': not said),
-- id_layout.  → schema, shards, coordination, features, max_members, id_layout, created, is_new
local app = KEYS[1]
local is, is_new = redis.call('TYPE', app).ok, 0
if is ~= 'none' and is ~= 'hash' then
	return redis.error_reply('WRONGTYPE ' .. app .. ' is a ' .. is .. ', Quiver wants a hash')
end
if is == 'none' then
	is_new = 1
	local clock = redis.call('TIME')
	redis.call('HSET', app, 'schema', ARGV[1], 'shards', ARGV[2], 'features', ARGV[5], 'id_layout', ARGV[7],
		'created', string.format('%.0f', clock[1] * 1000 + math.floor(clock[2] / 1000)))
end
local f = redis.call('HMGET', app, 'schema', 'shards', 'coordination', 'features', 'max_members', 'id_layout', 'created')
if f[1] == ARGV[1] and ARGV[3] ~= '' and (not f[3] or f[3] == ARGV[4]) then
	redis.call('HSET', app, 'coordination', ARGV[3])
	f[3] = ARGV[3]
end
if f[1] == ARGV[1] and ARGV[6] ~= '' and not f[5] then
	redis.call('HSET', app, 'max_members', ARGV[6])
	f[5] = ARGV[6]
end
for i = 1, 7 do
	f[i] = f[i] or ''
end
f[8] = is_new
return f
