-- State, epoch, holder; nothing if it cannot be read.
local function lease_read(text)
	local state, epoch, holder = string.match(text or 'free 0 ', '^(%a+) (%d+) (%x*)$')
	epoch = whole(epoch)
	if epoch and (state == 'held' or state == 'free') then
		return state, epoch, holder
	end
end

-- The want is kept as text: epoch, until, since when it is firm (0: patient), drain, nonce.
local function want_read(text, epoch)
	if not text then
		return nil
	end
	local e, till, firm, drain = string.match(text, '^(%d+) (%d+) (%d+) (%d+) ')
	local want = { epoch = whole(e), till = whole(till), firm = whole(firm), drain = whole(drain) }
	-- One that cannot be read is forgotten: whoever wants the shard says so again.
	return want.epoch and want.till and want.firm and want.drain and want.epoch > epoch and want.till > now and want or nil
end

-- 0: not wanted, 1: patiently, 2: firmly.
local function wanted(want)
	return want and (want.firm > 0 and 2 or 1) or 0
end

-- After a firm want's drain time the holder is not renewed any more.
local function is_refused(want)
	return want ~= nil and want.firm > 0 and now >= want.firm + want.drain
end

-- A lease that ends further away than it is long is cut: the clock was stepped back.
local function left_ms(till, ttl)
	return math.max(0, math.min((whole(till) or 0) - now, whole(ttl) or 0))
end
