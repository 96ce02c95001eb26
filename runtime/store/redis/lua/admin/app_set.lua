#!lua flags=allow-oom
-- app_set: changes the app's record.  KEYS: quiver:{APP}:app.
-- ARGV: schema, how many features there may be, max_members ('': stays), coordination ('': stays), features to switch on.
-- The version of the desired state grows too: every host listens to it.  → version, or 0: too many features
local app = KEYS[1]
local is = redis.call('TYPE', app).ok
if is ~= 'hash' then
	return redis.error_reply('WRONGTYPE ' .. app .. ' is a ' .. is .. ', Quiver wants a hash')
end
local f = redis.call('HMGET', app, 'schema', 'features', 'desired_version')
local version = f[3] or '0'
if f[1] ~= ARGV[1] then
	return redis.error_reply('BADVALUE ' .. app .. ': schema is "' .. string.sub(f[1] or '', 1, 64) .. '", and this Quiver writes ' .. ARGV[1])
elseif #version > 15 or not string.find(version, '^%d+$') or string.find(version, '^0%d') then
	return redis.error_reply('BADVALUE ' .. app .. ': desired_version is "' .. string.sub(version, 1, 64) .. '", not a number; set it to one that is higher than before')
end
local names, is_on = {}, {}
local function add(name)
	if not is_on[name] then
		is_on[name] = true
		names[#names + 1] = name
	end
end
for name in string.gmatch(f[2] or '', '%S+') do
	add(name)
end
for i = 5, #ARGV do
	add(ARGV[i])
end
if #names > tonumber(ARGV[2]) then
	return 0
end
table.sort(names)
redis.call('HSET', app, 'features', table.concat(names, ' '))
if ARGV[3] ~= '' then
	redis.call('HSET', app, 'max_members', ARGV[3])
end
if ARGV[4] ~= '' then
	redis.call('HSET', app, 'coordination', ARGV[4])
end
return redis.call('HINCRBY', app, 'desired_version', 1)
