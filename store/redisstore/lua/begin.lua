-- KEYS: the epoch. Returns the eviction policy of this server, or '' if it does not drop keys when
-- its memory is full, or does not report that.
local _, fault = epoch(KEYS[1])
if fault then return fault end
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' or string.find(info, 'maxmemory:0\r', 1, true) then return '' end
local policy = string.match(info, 'maxmemory_policy:([%w-]+)') or ''
return policy ~= 'noeviction' and policy or ''
