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

local prefix = KEYS[1] .. ':'
local IDS, SESSIONS = prefix .. 'ids', prefix .. 'sessions'
local REAP_SESSIONS, REAP_NODES = 16, 256

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

-- What this call has changed.  The caller is not rung for its own writes, and has to tell its own watchers.
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

-- Grows for ever.  The clock takes part so that it does so in a server that lost its data, too.
local function next_id()
	local last = tonumber(redis.call('GET', IDS) or 0)
	local id = math.max(last + 1, tonumber(time[1]) * 1000000 + tonumber(time[2]))
	local text = string.format('%.0f', id)
	redis.call('SET', IDS, text)
	return text
end

local function remove_node(path)
	local parent, name = split(path)
	redis.call('DEL', node_key(path))
	redis.call('SREM', children_key(parent), name)
	touch(path, true)
end

-- Returns how many nodes were looked at: with a full budget, more may be left for the next who comes by.
local function bury(session, budget)
	local paths = redis.call('SRANDMEMBER', nodes_key(session), budget)
	for _, path in ipairs(paths) do
		if redis.call('HGET', node_key(path), 'owner') == session then
			remove_node(path)
		end
		redis.call('SREM', nodes_key(session), path)
	end
	if #paths < budget then
		redis.call('DEL', session_key(session))
		redis.call('ZREM', SESSIONS, session)
	end
	return #paths
end

-- This server's clock was set back: nobody may live longer for it.  One at a time, from the end.
local function cut_last()
	local last = redis.call('ZREVRANGE', SESSIONS, 0, 0, 'WITHSCORES')
	local ttl = last[1] and tonumber(redis.call('HGET', session_key(last[1]), 'ttl') or 0)
	if ttl and tonumber(last[2]) > now + ttl then
		redis.call('ZADD', SESSIONS, now + ttl, last[1])
	end
end

-- Sessions end when somebody comes by: nobody ever sees a node of one that is over.
local function reap()
	local budget = REAP_NODES
	cut_last()
	for _, session in ipairs(redis.call('ZRANGEBYSCORE', SESSIONS, '-inf', now, 'LIMIT', 0, REAP_SESSIONS)) do
		budget = budget - bury(session, budget)
		if budget <= 0 then
			break
		end
	end
end

local function is_alive(session, nonce)
	local till = redis.call('ZSCORE', SESSIONS, session)
	return till and tonumber(till) > now and redis.call('HGET', session_key(session), 'nonce') == nonce
end

-- In how many milliseconds the next session ends, unless it is renewed.
local function next_end()
	local first = redis.call('ZRANGE', SESSIONS, 0, 0, 'WITHSCORES')
	return first[2] and math.max(tonumber(first[2]) - now, 0) or -1
end
