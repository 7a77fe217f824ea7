-- These functions are shared by all scripts of the pace. Times and durations are whole microseconds
-- by the clock of Redis.

local within = 1000000          -- how long after it was granted a lease is valid for sending
local brief = 1000              -- a delay up to this is not remembered and does not wait for requests without a delay
local memory = 60000000         -- the minimum time for which a requested delay is remembered
local life = 7 * 24 * 3600000   -- how long an unused epoch is kept, in milliseconds

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]

-- text formats a whole number with all its digits.
local function text(n) return string.format('%.0f', n) end

-- epoch returns the time since which no write has been lost, as far as this server can know. That
-- is no earlier than the creation of the key, and no earlier than the first use of this server
-- process, so a restart or a failover begins a new epoch. The function writes to the key, so that a
-- read-only replica cannot answer.
local function epoch(key)
	local info = redis.pcall('INFO', 'server')
	local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
	local kept = redis.call('GET', key)
	if kept then
		local version = string.match(kept, '^(%d+) ')
		if version ~= '1' then
			return nil, redis.error_reply('COLLYROBOTS VERSION ' .. string.sub(version or '?', 1, 20))
		end
	end
	local since, of = string.match(kept or '', '^1 (%d+) (%x*)$')
	since = tonumber(since)
	if since and of == run and since <= now then
		redis.call('PEXPIRE', key, life)
		return since
	end
	redis.call('SET', key, '1 ' .. text(now) .. ' ' .. run, 'PX', life)
	return now
end

-- load returns the state of a host. If the state is damaged, load renames its key to aside and
-- assumes that a request to the host has just ended.
local function load(key, aside)
	local h = { holder = '-', last = '-', seen = 0, ended = 0, since = 0, lease = 0, delay = 0, before = 0, window = 0, notbefore = 0, back = 0, aside = 0 }
	local kept = redis.pcall('GET', key)
	if not kept then return h end
	h.kept = true
	if type(kept) == 'table' then
		if not string.find(kept.err, 'WRONGTYPE', 1, true) then return nil, kept end
		kept = ''
	end
	local version = string.match(kept, '^(%d+) %w')
	if version and version ~= '1' then return nil, redis.error_reply('COLLYROBOTS VERSION ' .. string.sub(version, 1, 20)) end
	local holder, last, seen, ended, since, lease, delay, before, window, notbefore =
		string.match(kept, '^1 ([%w-]+) ([%w-]+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
	if not holder then
		redis.call('RENAME', key, aside)
		h.ended, h.seen, h.aside = now, now, 1
		return h
	end
	h.holder, h.last, h.seen, h.ended, h.since = holder, last, tonumber(seen), tonumber(ended), tonumber(since)
	h.lease, h.delay, h.before, h.window, h.notbefore = tonumber(lease), tonumber(delay), tonumber(before), tonumber(window), tonumber(notbefore)
	if h.seen > now then -- the clock went back: move all recorded times back by the same amount
		h.back = h.seen - now
		for _, at in ipairs({ 'ended', 'since', 'window', 'notbefore' }) do h[at] = math.max(0, h[at] - h.back) end
	end
	if h.holder ~= '-' and now >= h.since + h.lease then -- the lease expired without a release
		h.ended, h.holder = math.max(h.ended, h.since + h.lease), '-'
	end
	return h
end

-- ask records a delay that a process asks for, and returns the longest delay that was requested
-- recently. A brief delay, such as that for robots.txt, applies to one start only and is not
-- recorded.
local function ask(h, delay)
	local span = math.max(memory, h.delay, h.before, delay)
	if now >= h.window then
		h.before = now < h.window + span and h.delay or 0
		h.delay, h.window = 0, now + span
	end
	if delay > brief then h.delay = math.max(h.delay, delay) end
	return math.max(h.delay, h.before, delay)
end

-- allow records that requests that do not hold the host may be sent from now on, and returns until
-- when.
local function allow(key)
	redis.call('SET', key, text(now + within), 'PX', 2 * within / 1000)
	return now + within
end

-- sending returns until when requests may be sent that do not hold the host. If the recorded time is
-- damaged, or too late because the clock went back, such a request may have been allowed just now.
local function sending(key)
	local kept = redis.pcall('GET', key)
	if not kept then return 0 end
	local at = type(kept) == 'string' and tonumber(string.match(kept, '^%d+$'))
	if at and at <= now + within then return at end
	return allow(key)
end

-- save stores the state. The key expires when nothing in it is needed any more.
local function save(key, h)
	local span = math.max(memory, h.delay, h.before)
	local left = 3 * span + h.lease + math.max(0, h.notbefore - now, h.window - now)
	redis.call('SET', key, table.concat({ '1', h.holder, h.last, text(now), text(h.ended), text(h.since), text(h.lease), text(h.delay),
		text(h.before), text(h.window), text(h.notbefore) }, ' '), 'PX', text(math.ceil(left / 1000)))
end
