-- Records how a page has ended, and takes the next page of the host. If a client repeats the call
-- because it has not received the answer, it gets the same page again.
--
-- KEYS: the state, the waiting pages, the pages to retry and the failed pages of the host.
--
-- ARGV: the holder, the page that has ended ('' if there is none), how it has ended ('done',
-- 'denied', 'failed', 'retry' or 'back'), the text to store for a page that has failed or will be
-- retried, the pause before it is retried in milliseconds, and 1 to take the next page.
--
-- Returns a word and a value: 'lost' (another holder has the host), 'page' and the page, 'pause'
-- and the time in milliseconds until a page is retried, 'kept' (pages wait), or 'empty' (no page
-- waits, and the turn of the host is over).
local state, pages, retries, failed = unpack(KEYS)
local holder, ended, outcome, text, pause, take = unpack(ARGV)
if redis.call('HGET', state, 'holder') ~= holder then return { 'lost', '' } end

local page = redis.call('HGET', state, 'page')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if page and page == ended then
	redis.call('HDEL', state, 'page')
	page = false
	if outcome == 'retry' then
		redis.call('ZADD', retries, now + tonumber(pause), text)
	elseif outcome == 'back' then
		redis.call('LPUSH', pages, ended)
	else
		redis.call('HINCRBY', state, outcome, 1)
		if outcome == 'failed' then redis.call('RPUSH', failed, text) end
	end
end
if page then return { 'page', page } end

local first = redis.call('ZRANGE', retries, 0, 0, 'WITHSCORES')
local waits = first[2] and math.max(0, tonumber(first[2]) - now)
if redis.call('LLEN', pages) == 0 then
	if not waits then
		redis.call('HINCRBY', state, 'turn', 1)
		redis.call('HDEL', state, 'holder')
		return { 'empty', '' }
	elseif waits > 0 then
		return { 'pause', waits }
	end
end
if take ~= '1' then return { 'kept', '' } end
if waits == 0 then
	page = first[1]
	redis.call('ZREM', retries, page)
else
	page = redis.call('LPOP', pages)
end
redis.call('HSET', state, 'page', page)
return { 'page', page }
