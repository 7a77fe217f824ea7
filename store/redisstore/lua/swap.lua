-- KEYS: record. ARGV: the head of the record it replaces ('': none), the record ('': none), the octets of a head, its life in
-- milliseconds (0: for ever). Returns whether the record is now the given one.
local head = tonumber(ARGV[3])
local kept = redis.call('GETRANGE', KEYS[1], 0, head - 1)
if kept ~= ARGV[1] then
	-- The reply to this very call was lost, and it is made again.
	return ARGV[2] ~= '' and kept == string.sub(ARGV[2], 1, head) and 1 or 0
end
if ARGV[2] == '' then
	redis.call('DEL', KEYS[1])
elseif ARGV[4] == '0' then
	redis.call('SET', KEYS[1], ARGV[2])
else
	redis.call('SET', KEYS[1], ARGV[2], 'PX', ARGV[4])
end
return 1
