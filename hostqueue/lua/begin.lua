-- Makes a holder the only one that may take pages of a host. If another holder had a page in
-- progress, that page waits again, at the front.
--
-- KEYS: the state and the waiting pages of the host.
--
-- ARGV: the turn under which the host was listed, the holder.
--
-- Returns 1, or 0 if that turn is over because all pages of the host were done.
if (redis.call('HGET', KEYS[1], 'turn') or '0') ~= ARGV[1] then return 0 end
local page = redis.call('HGET', KEYS[1], 'page')
if page then
	redis.call('LPUSH', KEYS[2], page)
	redis.call('HDEL', KEYS[1], 'page')
end
redis.call('HSET', KEYS[1], 'holder', ARGV[2])
return 1
