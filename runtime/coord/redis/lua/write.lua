-- write: operations, all of them or none.  ARGV: session (0: a visitor), nonce, then for each operation:
--   kind      k: check, s: set, c: create, d: delete
--   path
--   version   that it must have; empty: any
--   flags     e: ephemeral, q: sequential, p: parents are made
--   data
-- → OK, changed, { path, version, created, owner } per operation
--   FAILED, changed, which one (from 0), NONODE | EXISTS | VERSION | NOTEMPTY | EPHEMERAL
--   EXPIRED, changed
--
-- First every operation is tried on copies of the nodes that it concerns, then all are written down.

reap()
local session = ARGV[1]
if session ~= '0' and not is_alive(session, ARGV[2]) then
	return { 'EXPIRED', changed }
end

local nodes, writes = {}, {}

local function look(path)
	local node = nodes[path]
	if not node then
		local fields = redis.call('HMGET', node_key(path), 'created', 'version', 'owner', 'sequence')
		node = {
			is_there = path == '' or fields[1] ~= false,
			created = fields[1],
			version = tonumber(fields[2] or 0),
			owner = fields[3] or '0',
			sequence = tonumber(fields[4] or 0),
			children = redis.call('SCARD', children_key(path)),
		}
		nodes[path] = node
	end
	return node
end

local function later(write)
	writes[#writes + 1] = write
end

local function add(path, node, owner, data)
	local parent, name = split(path)
	local above = look(parent)
	node.is_there, node.version, node.owner, node.children, node.sequence = true, 0, owner, 0, 0
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
	if node.owner ~= '0' then
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
	if string.find(op.flags, 'q') then
		local number = above.sequence
		op.path = op.path .. string.format('%010.0f', number)
		above.sequence = number + 1
		later(function()
			redis.call('HSET', node_key(parent), 'sequence', number + 1)
		end)
	end
	local node = look(op.path)
	if node.is_there then
		return 'EXISTS'
	end
	add(op.path, node, string.find(op.flags, 'e') and session or '0', op.data)
end

local function set(op, node)
	node.version = node.version + 1
	local version = node.version
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
		if owner ~= '0' then
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
	if op.version ~= '' and op.version ~= string.format('%.0f', node.version) then
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
	op.node, op.version_after, op.owner = node, node.version, node.owner
end
for _, write in ipairs(writes) do
	write()
end
local made = {}
for i, op in ipairs(ops) do
	made[i] = { op.path, string.format('%.0f', op.version_after), op.node.created or '0', op.owner }
end
return { 'OK', changed, made }
