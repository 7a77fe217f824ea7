-- Lists hosts, so that a process takes them.
--
-- KEYS: the listed hosts, the known hosts.
--
-- ARGV: the name and the member of each host.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 1, #ARGV, 2 do
	redis.call('SADD', KEYS[2], ARGV[i])
	redis.call('ZADD', KEYS[1], 'NX', now, ARGV[i + 1])
end
