-- tree: what every script begins with.  KEYS[1] is the app's hash tag; all keys of its tree begin with it:
--
--   …:ids             the last number given out: creation ids and sessions
--   …:sessions        sorted set: session → when it ends, in this server's milliseconds
--   …:session:NUMBER  hash: nonce, ttl (ms)
--   …:nodes:NUMBER    set: the paths of the session's nodes
--   …:node:PATH       hash: data, version, created, owner (0: it stays), sequence (of its children)
--   …:children:PATH   set: names
--
-- KEYS[1] itself is never written: Redis before 7.2 rings for every declared key.  Whatever a caller watches stands in
-- KEYS too, and is read after the last write, since a write by the same client would disarm it.
--
-- Others can write here, too.  Whatever is read is checked before the first write that depends on it: a value that
-- cannot be is told to the caller by its key, and never used.

local prefix = KEYS[1] .. ':'
local IDS, SESSIONS = prefix .. 'ids', prefix .. 'sessions'
local REAP_SESSIONS, REAP_NODES = 16, 256
local NUMBER_MAX = 2 ^ 53 - 1
local SEQUENCE_MAX = 9999999999 -- ten digits
local TTL_MAX = 24 * 60 * 60 * 1000

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local now_us = tonumber(time[1]) * 1000000 + tonumber(time[2])

-- What this call has changed.  The caller is not rung for its own writes, and has to tell its own watchers.  What was
-- found broken stands here as well: '!' and a text for people.
local changed = {}

local function node_key(path)
	return prefix .. 'node:' .. path
end

local function children_key(path)
	return prefix .. 'children:' .. path
end

local function nodes_key(session)
	return prefix .. 'nodes:' .. session
end

local function session_key(session)
	return prefix .. 'session:' .. session
end

local function split(path)
	local parent, name = string.match(path, '^(.*)/([^/]*)$')
	return parent or '', name or path
end

local function touch(path, is_listed)
	changed[#changed + 1] = 'node:' .. path
	if is_listed then
		changed[#changed + 1] = 'children:' .. split(path)
	end
end

-- Returns the text.
local function broken(key, what, value)
	local text = key .. ': ' .. what
	if value then
		text = text .. ' is "' .. string.sub(tostring(value), 1, 40) .. '"'
	end
	changed[#changed + 1] = '!' .. text
	return text
end

-- A whole number from 0 to `max` as decimal digits; nil: it is none.  tonumber() alone takes "nan", "inf", "0x10" and
-- "1e300" for numbers.
local function whole(text, max)
	if type(text) ~= 'string' or #text > 16 or not string.find(text, '^%d+$') then
		return nil
	end
	local number = tonumber(text)
	return number <= max and number or nil
end

-- Nothing, or of that type.
local function is_kind(key, kind)
	local found = redis.call('TYPE', key).ok
	if found == kind or found == 'none' then
		return true
	end
	broken(key, 'type', found)
	return false
end

-- Grows for ever.  The clock takes part so that it does so in a server that lost its data, too.
local function next_id()
	local last = is_kind(IDS, 'string') and redis.call('GET', IDS) or '0'
	local number = whole(last, NUMBER_MAX - 1)
	if not number then
		broken(IDS, 'the last id', last)
	end
	local text = string.format('%.0f', math.max((number or 0) + 1, now_us))
	redis.call('SET', IDS, text)
	return text
end

local function remove_node(path)
	local parent, name = split(path)
	redis.call('DEL', node_key(path))
	if is_kind(children_key(parent), 'set') then
		redis.call('SREM', children_key(parent), name)
	end
	touch(path, true)
end

-- Returns how many nodes were looked at: with a full budget, more may be left for the next who comes by.
local function end_session(session, budget)
	local key = nodes_key(session)
	local paths = is_kind(key, 'set') and redis.call('SRANDMEMBER', key, budget) or {}
	local owned = {}
	for _, path in ipairs(paths) do
		local owner = is_kind(node_key(path), 'hash') and redis.call('HGET', node_key(path), 'owner')
		owned[path] = owner and (owner == session or not whole(owner, NUMBER_MAX))
	end
	for _, path in ipairs(paths) do
		if owned[path] then
			remove_node(path)
		end
		redis.call('SREM', key, path)
	end
	if #paths < budget then
		redis.call('DEL', session_key(session))
		redis.call('ZREM', SESSIONS, session)
	end
	return #paths
end

-- How long the session lasts without a word of its holder.  One that says nothing sensible of itself is over.
local function ttl_of(session)
	local key = session_key(session)
	local ttl = is_kind(key, 'hash') and redis.call('HGET', key, 'ttl')
	local number = ttl and whole(ttl, TTL_MAX)
	if ttl and not number then
		broken(key, 'ttl', ttl)
	end
	return number or 0
end

-- This server's clock was set back: nobody may live longer for it.  One at a time, from the end.
local function cut_last()
	local last = redis.call('ZREVRANGE', SESSIONS, 0, 0, 'WITHSCORES')
	if last[1] then
		local till = now + ttl_of(last[1])
		if tonumber(last[2]) > till then
			redis.call('ZADD', SESSIONS, till, last[1])
		end
	end
end

-- Sessions end when somebody comes by: nobody ever sees a node of one that is over.
local function reap()
	local budget = REAP_NODES
	if not is_kind(SESSIONS, 'zset') then
		return
	end
	cut_last()
	for _, session in ipairs(redis.call('ZRANGEBYSCORE', SESSIONS, '-inf', now, 'LIMIT', 0, REAP_SESSIONS)) do
		budget = budget - end_session(session, budget)
		if budget <= 0 then
			break
		end
	end
end

local function is_alive(session, nonce)
	local key = session_key(session)
	if not (is_kind(SESSIONS, 'zset') and is_kind(key, 'hash')) then
		return false
	end
	local till = redis.call('ZSCORE', SESSIONS, session)
	return till and tonumber(till) > now and redis.call('HGET', key, 'nonce') == nonce
end

-- In how many milliseconds the next session ends, unless it is renewed; -1: nobody knows.
local function next_end()
	local first = redis.call('ZRANGE', SESSIONS, 0, 0, 'WITHSCORES')
	local left = first[2] and math.max(tonumber(first[2]) - now, 0) or -1
	return left <= TTL_MAX and left or -1
end

-- What is wrong with what was read of a node; nil: nothing, or there is no such node.
local function check_node(key, created, version, owner)
	if not created then
		return nil
	elseif not whole(created, NUMBER_MAX) then
		return broken(key, 'created', created)
	elseif not whole(version, NUMBER_MAX) then
		return broken(key, 'version', version)
	elseif not whole(owner, NUMBER_MAX) then
		return broken(key, 'owner', owner)
	end
	return nil
end
