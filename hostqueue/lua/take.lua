-- Takes hosts that are due. They are due again when the lease ends, unless it is renewed.
--
-- KEYS: the listed hosts, the processes, the identity of the crawl.
--
-- ARGV: the identity that the process knows, the name of the process, how many hosts it may take,
-- the lease in milliseconds.
--
-- Returns the number of listed hosts, the number of processes, the time in milliseconds until the
-- next host is due (-1 if none is listed), and the members that were taken. It returns nothing if
-- the identity is another one.
if redis.call('GET', KEYS[3]) ~= ARGV[1] then return {} end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local count, lease = tonumber(ARGV[3]), tonumber(ARGV[4])
local taken = {}
if count > 0 then
	taken = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, count)
end
for _, member in ipairs(taken) do
	redis.call('ZADD', KEYS[1], now + lease, member)
end
redis.call('ZADD', KEYS[2], now + lease, ARGV[2])
redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', now)
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')
local wait = -1
if first[2] then wait = math.max(0, tonumber(first[2]) - now) end
local answer = { redis.call('ZCARD', KEYS[1]), redis.call('ZCARD', KEYS[2]), wait }
for _, member in ipairs(taken) do answer[#answer + 1] = member end
return answer
