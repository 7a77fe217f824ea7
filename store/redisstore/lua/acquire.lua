-- KEYS: the state of the host, the epoch, the key to which a damaged state is moved, the time until
-- which requests may be sent that do not hold the host.
--
-- ARGV: token, lease, delay.
--
-- Returns six numbers: the result (0: nothing is granted, 1: the host is granted, 2: a start is
-- granted that does not hold the host, 3: the token was already released), the time until the next
-- attempt, the delay in force, by how much the clock went back, whether a damaged state was moved
-- aside, and the age of the epoch.
local token, lease, delay = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local since, fault = epoch(KEYS[2])
if fault then return fault end
local h, fault = load(KEYS[1], KEYS[3])
if fault then return fault end

local gap = ask(h, delay)
local function answer(granted, wait) return { granted, wait, gap, h.back, h.aside, now - since } end

local start = math.max(h.ended + gap, since + within + gap, h.notbefore)
if gap > brief then start = math.max(start, sending(KEYS[4]) + gap) end
if h.last == token then
	return answer(3, 0)
elseif h.holder ~= token and h.holder ~= '-' then
	-- If the host is released now, the next start is possible after one delay. It is early enough
	-- to ask again then.
	local wait = gap > 20000 and gap or math.max(20000, (now - h.since) / 8)
	save(KEYS[1], h)
	return answer(0, math.max(math.ceil(wait), h.notbefore - now))
elseif h.holder ~= token and now < start then
	if gap > 0 or h.kept then save(KEYS[1], h) end
	return answer(0, start - now)
elseif gap == 0 then
	allow(KEYS[4])
	return answer(2, 0)
end
h.holder, h.since, h.lease = token, now, lease
save(KEYS[1], h)
return answer(1, 0)
