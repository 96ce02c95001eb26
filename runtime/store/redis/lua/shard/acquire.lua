#!lua flags=allow-oom
-- acquire: who may act on the shard.  ARGV: epoch, nonce, ttl, firm, drain, page, the host's
-- name ('': what is known of that nonce stays).
-- → 0 (granted), stored epoch, call, left, is_recovery, has_work, next_due, has_keys, now, has_more, page, has_names, next_schedule (0: none)
--   1 (busy), stored epoch, busy_ms, holder     2 (stale), stored epoch
--include shard
--include look
--include lease
--include note
--include task
--include dead
--include log
--include claimed
--include page

check_types('shard', 'flight', 'notes', 'keys', 'due', 'high', 'normal', 'low', 'delayed', 'control', 'dead', 'deadnumbers',
	'deadids', 'deadgroups')
local counts = check_counts(unpack(COUNTS))
local claimed = claimed_check()
local fields = redis.call('HMGET', shard, 'lease', 'until', 'ttl', 'want')
local state, stored, holder = lease_read(fields[1])
if not state then
	bad_value('lease', fields[1])
end
local epoch, nonce, ttl = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3])
local is_held, is_ours = state == 'held', holder == nonce

if epoch < stored or (epoch == stored and not is_ours) then
	return { 2, stored }
end

local left = is_held and left_ms(fields[2], fields[3]) or 0
if epoch > stored and is_held and not is_ours and left > 0 then
	-- A cut must last: else it would begin anew with every look at it.
	redis.call('HSET', shard, 'until', now + left)
	local want = want_read(fields[4], stored)
	if not want or want.epoch <= epoch then
		local firm = 0
		if ARGV[4] == '1' then
			firm = want and want.epoch == epoch and want.firm > 0 and want.firm or now
		end
		redis.call('HSET', shard, 'want',
			string.format('%.0f %.0f %.0f %s %s', epoch, now + ttl, firm, ARGV[5], nonce))
	end
	look()
	return { 1, stored, left, holder }
end

-- A call of before is numbered call (its answer was lost) or call + 1 (it still travels); now neither fits.
local call = counts.call + 2
local want = want_read(fields[4], epoch)
local till = now + ttl
if is_refused(want) then
	till, ttl = whole(fields[2]) or 0, whole(fields[3]) or 0
end
redis.call('HSET', shard, 'lease', 'held ' .. ARGV[1] .. ' ' .. nonce, 'until', till, 'ttl', ttl, 'call', call, 'last', '',
	'returned', 0)
if ARGV[7] ~= '' then
	redis.call('HSET', shard, 'host', ARGV[7] .. ' ' .. nonce)
end
for _, name in ipairs({ 'high', 'normal', 'low', 'done' }) do
	redis.call('HSETNX', shard, name, 0)
end
if fields[4] and not want then
	redis.call('HDEL', shard, 'want')
end
claimed_move(claimed)
local page, has_more = {}, 0
if tonumber(ARGV[6]) > 0 then
	page, has_more = flight_page(claimed, 0, tonumber(ARGV[6]))
end
-- What is no sorted set has none: whoever changes or fires one is told.
local function next_schedule()
	local first = redis.pcall('ZRANGE', at .. 'scheduled', 0, 0, 'WITHSCORES')[2]
	return first and string.format('%.0f', whole(tonumber(first)) or 0) or '0'
end

local next_due, is_queued, controls = look()
local has_work = is_queued or controls > 0 or next_due == 0 or redis.call('EXISTS', at .. 'outbox') == 1
return { 0, epoch, call, left_ms(till, ttl), is_held and not is_ours and 1 or 0, has_work and 1 or 0, next_due,
	redis.call('EXISTS', at .. 'keys'), now, has_more, page, redis.call('EXISTS', at .. 'named'),
	next_schedule() }
