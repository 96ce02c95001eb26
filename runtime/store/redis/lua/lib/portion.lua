-- How many elements of a list may be read at once before any of them is known: a script that reads a list of large ones
-- blindly stops the server for as long as it takes to copy them all, some 4 ms a MiB.
-- MEMORY USAGE copies nothing.  It looks at the first nodes of the list and scales what they hold up to the whole list, so
-- that it is never less than what the first `asked` elements hold: a list of up to 1 MiB is read as asked.  Of a longer
-- one as many as hold 32 KiB, going by its first eight nodes, in which these are if they are small: a node has many small
-- elements, or one large one.  Also returns whether it is such a longer one.
local PORTION_BYTES = 1048576
local function portion(list, asked)
	local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', string.format('%d', asked))
	if type(bytes) ~= 'number' then
		return bytes and math.min(asked, 4) or asked, false -- not allowed here; or there is no such list
	elseif bytes <= PORTION_BYTES then
		return asked, false
	end
	if asked > 8 then
		bytes = math.max(bytes, redis.call('MEMORY', 'USAGE', list, 'SAMPLES', '8'))
	end
	return math.max(1, math.min(asked, math.floor(32768 * redis.call('LLEN', list) / bytes))), true
end
