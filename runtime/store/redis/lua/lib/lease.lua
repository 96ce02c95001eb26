-- The want is kept as text: epoch, until, since when it is firm (0: patient), drain, nonce.
local function want_read(text, epoch)
	if not text then
		return nil
	end
	local e, till, firm, drain = string.match(text, '^(%d+) (%d+) (%d+) (%d+) ')
	if not e then
		return nil -- nobody's: it is replaced, or removed
	end
	local want = { epoch = tonumber(e), till = tonumber(till), firm = tonumber(firm), drain = tonumber(drain) }
	return want.epoch > epoch and want.till > now and want or nil
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
	return math.max(0, math.min(tonumber(till or 0) - now, tonumber(ttl or 0)))
end
