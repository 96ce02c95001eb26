#!lua flags=allow-oom
-- write: operations, all of them or none.  ARGV: session (0: a visitor), nonce, then for each operation:
--   kind      k: check, s: set, c: create, d: delete
--   path
--   version   that it must have; empty: any
--   flags     e: ephemeral, q: sequential, p: parents are made
--   data
-- → OK, changed, { path, version, created, owner } per operation
--   FAILED, changed, which one (from 0), NONODE | EXISTS | VERSION | NOTEMPTY | EPHEMERAL | BROKEN
--   EXPIRED, changed
--
-- First every operation is tried on copies of the nodes that it concerns, then all are written down.  A node with a
-- value that cannot be has no version that anybody could name; who does not name one replaces or deletes it.
--include tree


reap()
local session = ARGV[1]
if session ~= '0' and not is_alive(session, ARGV[2]) then
	return { 'EXPIRED', changed }
end

local nodes, writes = {}, {}

local function look(path)
	local node = nodes[path]
	if node then
		return node
	end
	local key = node_key(path)
	node = { is_broken = not (is_kind(key, 'hash') and is_kind(children_key(path), 'set')) }
	nodes[path] = node
	if node.is_broken then
		node.is_there, node.owner, node.children, node.created = true, '0', 1, '0'
		return node
	end
	local fields = redis.call('HMGET', key, 'created', 'version', 'owner', 'sequence')
	node.is_there = path == '' or fields[1] ~= false
	node.has_wrong = path ~= '' and check_node(key, fields[1], fields[2], fields[3]) ~= nil
	node.created = whole(fields[1], NUMBER_MAX) and fields[1]
	node.version = not node.has_wrong and tonumber(fields[2] or 0) or nil
	node.owner = whole(fields[3], NUMBER_MAX) and fields[3] or '0'
	node.children = redis.call('SCARD', children_key(path))
	node.sequence = fields[4]
	return node
end

-- The next number for a child.  If there is none that can be, the one above every number that a child has: nobody comes
-- before those who were there.
local function sequence_of(path, node)
	local number = node.sequence and whole(node.sequence, SEQUENCE_MAX)
	if number then
		return number
	end
	if node.sequence then
		broken(node_key(path), 'sequence', node.sequence)
	end
	number = 0
	for _, name in ipairs(redis.call('SMEMBERS', children_key(path))) do
		number = math.max(number, tonumber(string.match(name, '%d%d%d%d%d%d%d%d%d%d$') or -1) + 1)
	end
	return number
end

local function later(write)
	writes[#writes + 1] = write
end

local function add(path, node, owner, data)
	local parent, name = split(path)
	local above = look(parent)
	node.is_there, node.version, node.owner, node.children, node.sequence = true, 0, owner, 0, '0'
	node.has_wrong = false
	above.children = above.children + 1
	later(function()
		node.created = next_id()
		redis.call('HSET', node_key(path), 'data', data, 'version', 0, 'created', node.created, 'owner', owner)
		redis.call('SADD', children_key(parent), name)
		if owner ~= '0' then
			redis.call('SADD', nodes_key(owner), path)
		end
		touch(path, true)
	end)
end

-- The parent of what is to be made; nil and why if it cannot have children.
local function stand_on(path, makes_parents)
	local node = look(path)
	if not node.is_there then
		if not makes_parents then
			return nil, 'NONODE'
		end
		local above, why = stand_on(split(path), true)
		if not above then
			return nil, why
		end
		add(path, node, '0', '')
	end
	if node.is_broken then
		return nil, 'BROKEN'
	elseif node.owner ~= '0' then
		return nil, 'EPHEMERAL'
	end
	return node
end

local function create(op)
	local parent = split(op.path)
	local above, why = stand_on(parent, string.find(op.flags, 'p'))
	if not above then
		return why
	end
	if string.find(op.flags, 'e') and not is_kind(nodes_key(session), 'set') then
		return 'BROKEN'
	end
	if string.find(op.flags, 'q') then
		local number = sequence_of(parent, above)
		if number > SEQUENCE_MAX then
			broken(node_key(parent), 'no number is left in its sequence')
			return 'BROKEN'
		end
		op.path = op.path .. string.format('%010.0f', number)
		above.sequence = string.format('%.0f', number + 1)
		later(function()
			redis.call('HSET', node_key(parent), 'sequence', above.sequence)
		end)
	end
	local node = look(op.path)
	if node.is_there then
		return 'EXISTS'
	end
	add(op.path, node, string.find(op.flags, 'e') and session or '0', op.data)
end

-- One that was wrong is made whole: its version is one that it never had.
local function mend(path, node)
	local is_ours = is_kind(nodes_key(session), 'set') and redis.call('SISMEMBER', nodes_key(session), path) == 1
	node.owner = is_ours and session or '0'
	node.version = math.floor(now / 1000)
	node.has_wrong = false
	later(function()
		node.created = node.created or next_id()
		redis.call('HSET', node_key(path), 'created', node.created, 'owner', node.owner)
	end)
end

local function set(op, node)
	if node.has_wrong then
		mend(op.path, node)
	end
	node.version = node.version + 1
	local version = string.format('%.0f', node.version)
	later(function()
		redis.call('HSET', node_key(op.path), 'data', op.data, 'version', version)
		touch(op.path, false)
	end)
end

local function delete(op, node)
	if node.children > 0 then
		return 'NOTEMPTY'
	end
	local owner = node.owner
	local above = look((split(op.path)))
	node.is_there = false
	above.children = above.children - 1
	later(function()
		remove_node(op.path)
		if owner ~= '0' and is_kind(nodes_key(owner), 'set') then
			redis.call('SREM', nodes_key(owner), op.path)
		end
	end)
end

local function try(op)
	if op.kind == 'c' then
		return create(op)
	end
	local node = look(op.path)
	if not node.is_there then
		return 'NONODE'
	end
	if node.is_broken then
		return 'BROKEN'
	end
	if op.version ~= '' and (node.has_wrong or op.version ~= string.format('%.0f', node.version)) then
		return 'VERSION'
	end
	if op.kind == 's' then
		return set(op, node)
	elseif op.kind == 'd' then
		return delete(op, node)
	end
end

local ops = {}
for i = 3, #ARGV, 5 do
	local op = { kind = ARGV[i], path = ARGV[i + 1], version = ARGV[i + 2], flags = ARGV[i + 3], data = ARGV[i + 4] }
	local why = try(op)
	if why then
		return { 'FAILED', changed, #ops, why }
	end
	ops[#ops + 1] = op
	local node = nodes[op.path]
	op.node, op.version_after, op.owner = node, node.version or 0, node.owner
end
for _, write in ipairs(writes) do
	write()
end
local made = {}
for i, op in ipairs(ops) do
	made[i] = { op.path, string.format('%.0f', op.version_after), op.node.created or '0', op.owner }
end
return { 'OK', changed, made }
