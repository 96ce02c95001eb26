-- How many elements of a list may be read at once before any of them is known: a script that reads a list of large ones
-- blindly stops the server for as long as it takes to copy them all, some 4 ms a MiB.
-- MEMORY USAGE copies nothing.  It looks at the first nodes of the list and scales what they hold up to the whole list, so
-- that it is never less than what the first `asked` elements hold: a list of up to 1 MiB is read as asked.  Of a longer
-- one as many as hold 32 KiB, going by its largest part: a node has many small elements, or one large one, so the truth
-- may be as many times more as there are elements in a node.  Also returns whether it is such a longer one.
local PORTION_BYTES = 1048576
local function portion(list, asked)
	local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', asked)
	if type(bytes) ~= 'number' then
		return bytes and math.min(asked, 4) or asked, false -- not allowed here; or there is no such list
	elseif bytes <= PORTION_BYTES then
		return asked, false
	end
	for _, samples in ipairs({ 1, 8, 64 }) do
		if samples < asked then
			bytes = math.max(bytes, redis.call('MEMORY', 'USAGE', list, 'SAMPLES', samples))
		end
	end
	return math.max(1, math.min(asked, math.floor(32768 * redis.call('LLEN', list) / bytes))), true
end

-- True if the list's first element is certainly longer than `limit`, which is found out without reading it: in a node
-- with others, where that is at most 64 KiB, it would not be.
local function is_head_longer(list, limit)
	local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', 1)
	return type(bytes) == 'number' and (bytes - 512) / redis.call('LLEN', list) > 1.25 * limit + 131072
end
