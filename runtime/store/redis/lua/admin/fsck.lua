#!lua flags=no-writes
-- fsck: checks a slice of one structure; each slice by itself is consistent, whoever works meanwhile.
-- ARGV: part, cursor.  → next cursor ('': the part is done), tasks seen, problems (one line each), parts, mended (0)
--include shard
--include note
--include task
--include dead
--include log
--include claimed
--include key
--include marks
--include lease
--include idempotency
--include outbox
--include room_record
--include schedule
local mends = false
--include proof

return prove()
