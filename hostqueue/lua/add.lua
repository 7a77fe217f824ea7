-- Records the pages of one host that are not known yet.
--
-- KEYS: the state, the waiting pages and the known pages of the host.
--
-- ARGV: the largest number of known pages (0: no limit), then the key and the text of each page.
--
-- Returns the turn under which the host must be listed, or -1 if it is listed or has no page that
-- waits.
local most = tonumber(ARGV[1])
local known = redis.call('SCARD', KEYS[3])
for i = 2, #ARGV, 2 do
	if most == 0 or known < most then
		if redis.call('SADD', KEYS[3], ARGV[i]) == 1 then
			redis.call('RPUSH', KEYS[2], ARGV[i + 1])
			known = known + 1
		end
	elseif redis.call('SISMEMBER', KEYS[3], ARGV[i]) == 0 then
		redis.call('HINCRBY', KEYS[1], 'dropped', 1)
	end
end
local turn = redis.call('HGET', KEYS[1], 'turn') or '0'
if redis.call('HGET', KEYS[1], 'listed') == turn or redis.call('LLEN', KEYS[2]) == 0 then
	return -1
end
return tonumber(turn)
