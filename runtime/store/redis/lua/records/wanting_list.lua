#!lua flags=no-writes
-- wanting_list: who wants help.  KEYS: see lib/wanting.lua.  ARGV: handler ('': all), the most.
-- → per record: handler, nonce, tasks, since
--include wanting

local names = redis.call('ZRANGEBYSCORE', wanting_ends, '(' .. now, '+inf', 'LIMIT', 0, ARGV[2])
table.sort(names)
local rows = {}
for _, name in ipairs(names) do
	local handler, nonce = string.match(name, '^([%w_-]+) (%x+)$')
	local tasks, since = wanting_read(redis.call('HGET', wanting, name))
	if handler and tasks and (ARGV[1] == '' or ARGV[1] == handler) then
		for _, value in ipairs({ handler, nonce, tasks, since }) do
			rows[#rows + 1] = value
		end
	end
end
redis.call('EXISTS', wanting_set) -- rings at the next one
return rows
