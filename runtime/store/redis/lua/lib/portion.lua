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

-- How many bytes the list's first node has at least, which is found out without reading it: there are no more nodes than
-- elements.
local function head_least(list)
	local bytes = redis.pcall('MEMORY', 'USAGE', list, 'SAMPLES', 1)
	return type(bytes) == 'number' and (bytes - 512) / redis.call('LLEN', list) or 0
end

-- True if a first node of so many bytes can only be one element longer than `limit`: one of several elements has at most
-- 64 KiB, and what is allocated at most a quarter more than what is needed.
local function is_certainly_longer(least, limit)
	return least > 1.25 * limit + 131072
end
