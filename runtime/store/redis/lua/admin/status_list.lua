#!lua flags=no-writes
-- status_list: the documents whose time is not over.  KEYS: quiver:{APP}:status, quiver:{APP}:statusends.  ARGV: max,
-- and the nonce of the only one ('': all).
-- → per host: nonce, age, document
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
local nonces
if ARGV[2] == '' then
	nonces = redis.call('ZRANGEBYSCORE', KEYS[2], '(' .. now, '+inf', 'LIMIT', 0, ARGV[1])
else
	nonces = tonumber(redis.call('ZSCORE', KEYS[2], ARGV[2]) or 0) > now and { ARGV[2] } or {}
end
table.sort(nonces)
local rows = {}
for _, nonce in ipairs(nonces) do
	local packed = redis.call('HGET', KEYS[1], nonce)
	local is_read, d = pcall(cmsgpack.unpack, packed or '')
	-- What a host did not write about itself is nobody's document.
	if is_read and type(d) == 'table' and type(d[1]) == 'number' and type(d[2]) == 'string' then
		rows[#rows + 1] = nonce
		rows[#rows + 1] = math.max(0, now - d[1])
		rows[#rows + 1] = d[2]
	end
end
return rows
