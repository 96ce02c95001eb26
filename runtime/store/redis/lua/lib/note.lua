-- Notes, as task/note.h describes them, as tables.
local NUMBERS = { attempts = 4294967294, crashes = 4294967294, interruptions = 4294967294, laters = 4294967294, started = 9007199254740991,
	['until'] = 9007199254740991, merged = 4294967294, mergedat = 9007199254740991, debounced = 1, suspect = 1 }
local EVENTS_MAX = 8
local TEXT_MAX = 2048

local function note_read(bytes)
	local n = { attempts = 0, crashes = 0, interruptions = 0, laters = 0, started = 0, ['until'] = 0, merged = 0, mergedat = 0,
		debounced = 0, suspect = 0, holder = '', events = {}, checkpoint = '' }
	if not bytes or string.sub(bytes, 1, 4) ~= 'qn1\n' then
		return n
	end
	local from = 5
	while true do
		local stop = string.find(bytes, '\n', from, true)
		if not stop then
			return n
		end
		if stop == from then
			n.checkpoint = string.sub(bytes, stop + 1)
			return n
		end
		local line = string.sub(bytes, from, stop - 1)
		local name, value = string.match(line, '^(%a+):(.*)$')
		if name == 'event' then
			if #n.events == EVENTS_MAX then
				table.remove(n.events, 1)
			end
			n.events[#n.events + 1] = line
		elseif name == 'holder' then
			n.holder = string.match(value, '^[!-~]+$') and #value <= 128 and value or ''
		elseif NUMBERS[name] then
			n[name] = math.min(whole(value) or 0, NUMBERS[name])
		end
		from = stop + 1
	end
end

-- '' for a note that says nothing.
local function note_write(n)
	local lines = {}
	for _, name in ipairs({ 'attempts', 'crashes', 'interruptions', 'laters', 'started', 'until', 'merged', 'mergedat', 'debounced',
		'suspect' }) do
		if n[name] > 0 then
			lines[#lines + 1] = string.format('%s:%.0f', name, n[name])
		end
	end
	if n.holder ~= '' then
		lines[#lines + 1] = 'holder:' .. n.holder
	end
	for _, event in ipairs(n.events) do
		lines[#lines + 1] = event
	end
	if #lines == 0 and n.checkpoint == '' then
		return ''
	end
	lines[#lines + 1] = ''
	return 'qn1\n' .. table.concat(lines, '\n') .. '\n' .. n.checkpoint
end

-- The start is over: its mark goes.
local function note_clear_start(n)
	n.started, n['until'], n.holder = 0, 0, ''
end

-- What a reply or a result keeps of a note: counts and history.  Marks and checkpoint were for the task's next start.
local function note_of_done(bytes)
	if bytes == '' then
		return ''
	end
	local n = note_read(bytes)
	note_clear_start(n)
	n.suspect, n.checkpoint = 0, ''
	return note_write(n)
end

local function note_event(n, kind, text)
	while #n.events >= EVENTS_MAX do
		table.remove(n.events, 1)
	end
	local line = string.format('event:%.0f %s', now, kind)
	if text and text ~= '' then
		local lines = string.gsub(string.sub(text, 1, TEXT_MAX), '\n', '\31')
		line = line .. ' ' .. string.gsub(lines, '[%z\1-\30\127]', ' ')
	end
	n.events[#n.events + 1] = line
end

local COSTS = { [0] = 'waited', 'attempt', 'crash', 'interruption', 'later' }
local COUNTED = { 'attempts', 'crashes', 'interruptions', 'laters' }

-- A LATER right after another one replaces that one's event: a thousand of them do not push everything else out.
local function note_charge(n, cost, text)
	if cost == 4 and string.match(n.events[#n.events] or '', '^event:%d+ later%f[ %z]') then
		n.events[#n.events] = nil
	end
	if cost > 0 then
		n[COUNTED[cost]] = math.min(n[COUNTED[cost]] + 1, NUMBERS[COUNTED[cost]])
	end
	note_event(n, COSTS[cost], text)
end
