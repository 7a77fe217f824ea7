-- KEYS: epoch. Returns how this server drops keys when its memory is full ('': it does not, or does not say).
local _, fault = epoch(KEYS[1])
if fault then return fault end
local info = redis.pcall('INFO', 'memory')
if type(info) ~= 'string' or string.find(info, 'maxmemory:0\r', 1, true) then return '' end
local policy = string.match(info, 'maxmemory_policy:([%w-]+)') or ''
return policy ~= 'noeviction' and policy or ''
