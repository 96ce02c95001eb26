#!lua flags=no-writes
-- names: what keys of the shard wait for, by name.  ARGV: lease, after, max.  → whether there are more, names
--include shard

if redis.call('HGET', shard, 'lease') ~= ARGV[1] then
	return 'FENCED'
end
check_types('named')
local after, max, list = ARGV[2], tonumber(ARGV[3]), {}
while true do
	local member = redis.call('ZRANGEBYLEX', at .. 'named', after == '' and '-' or '(' .. after .. '\1', '+', 'LIMIT', 0, 1)[1]
	local name = member and string.match(member, '^[!-~]+%z') and string.match(member, '^[!-~]+')
	if not member or not name then
		return { 0, list } -- behind what is no name nothing is looked for: fsck drops it
	elseif #list == max then
		return { 1, list }
	end
	after = name
	if #name <= 200 then
		list[#list + 1] = name
	end
end
