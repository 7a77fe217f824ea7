-- KEYS: the record.
--
-- ARGV: the head of the record to replace ('' if there is none), the new record ('' to delete it),
-- the length of a head in bytes, the time to live in milliseconds (0 if the record does not
-- expire).
--
-- Returns whether the record is now the new one.
local head = tonumber(ARGV[3])
local kept = redis.call('GETRANGE', KEYS[1], 0, head - 1)
if kept ~= ARGV[1] then
	-- If the reply to this call was lost, the client makes the call again. The record is then
	-- already the new one.
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
