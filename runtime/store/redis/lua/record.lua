#!lua flags=allow-oom
-- record: records the app if it is not there, and where its coordination is.  KEYS: quiver:{APP}:app.
-- ARGV: schema, shards (0: not said), coordination ('': not said), the coordination that it replaces.
-- → schema, shards, coordination, is_new
local app = KEYS[1]
local is, is_new = redis.call('TYPE', app).ok, 0
if is ~= 'none' and is ~= 'hash' then
	return redis.error_reply('WRONGTYPE ' .. app .. ' is a ' .. is .. ', Quiver wants a hash')
end
if is == 'none' then
	is_new = 1
	redis.call('HSET', app, 'schema', ARGV[1], 'shards', ARGV[2] == '0' and 64 or ARGV[2])
end
local f = redis.call('HMGET', app, 'schema', 'shards', 'coordination')
if f[1] == ARGV[1] and ARGV[3] ~= '' and (not f[3] or f[3] == ARGV[4]) then
	redis.call('HSET', app, 'coordination', ARGV[3])
	f[3] = ARGV[3]
end
return { f[1] or '', f[2] or '', f[3] or '', is_new }
