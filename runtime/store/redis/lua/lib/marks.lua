-- A queued task that was cancelled leaves a mark in its place, so that the numbers behind it stay right.  How many there
-- are in each lane stands in the shard's field `gone`, which is there only if there are any.
local MARK = 'cancelled'

local function marks_read(text)
	local h, n, l = string.match(text or '0 0 0', '^(%d+) (%d+) (%d+)$')
	if not h then
		error({ err = 'CORRUPT ' .. shard .. ': its field gone is not three numbers: ' .. string.sub(text, 1, 64) })
	end
	return { [0] = tonumber(h), tonumber(n), tonumber(l) }
end

local function marks_write(marks)
	if marks[0] + marks[1] + marks[2] > 0 then
		redis.call('HSET', shard, 'gone', string.format('%.0f %.0f %.0f', marks[0], marks[1], marks[2]))
	else
		redis.call('HDEL', shard, 'gone')
	end
end
