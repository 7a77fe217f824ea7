-- KEYS: host, epoch, where to set aside what is no host's state. ARGV: token, lease, delay.
-- Returns what is granted (0: nothing, 1: the host, 2: a start that takes nothing, 3: this token was given back), after what time to look
-- again, the delay that holds, by how much the clock went back, whether something was set aside, and the age of the epoch.
local token, lease, delay = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local since, fault = epoch(KEYS[2])
if fault then return fault end
local h, fault = load(KEYS[1], KEYS[3])
if fault then return fault end

local gap = ask(h, delay)
local function answer(granted, wait) return { granted, wait, gap, h.back, h.aside, now - since } end

local start = math.max(h.ended + gap, since + within + gap, h.notbefore)
if h.last == token then
	return answer(3, 0)
elseif h.holder ~= token and h.holder ~= '-' then
	-- If it were given back now, the next could start after one delay: it is early enough to look then.
	local wait = gap > 20000 and gap or math.max(20000, (now - h.since) / 8)
	save(KEYS[1], h)
	return answer(0, math.max(math.ceil(wait), h.notbefore - now))
elseif h.holder ~= token and now < start then
	if gap > 0 or h.kept then save(KEYS[1], h) end
	return answer(0, start - now)
elseif gap == 0 then
	return answer(2, 0)
end
h.holder, h.since, h.lease = token, now, lease
save(KEYS[1], h)
return answer(1, 0)
