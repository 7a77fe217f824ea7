-- Sets when hosts are due, to renew their leases or to give them back.
--
-- KEYS: the listed hosts.
--
-- ARGV: the member of each host, and in how many milliseconds it is due.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #ARGV, 2 do
	redis.call('ZADD', KEYS[1], 'XX', now + tonumber(ARGV[i + 1]), ARGV[i])
end
