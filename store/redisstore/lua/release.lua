-- KEYS: the state of the host, the key to which a damaged state is moved.
--
-- ARGV: token, whether the request was sent, how long ago it ended, delay, for how long from now no
-- request may start.
--
-- Returns by how much the clock went back, and whether a damaged state was moved aside.
local token, sent, ago, delay, hold = ARGV[1], ARGV[2] == '1', tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])

local h, fault = load(KEYS[1], KEYS[2])
if fault then return fault end
if h.holder == token then h.holder = '-' end
h.last = token -- rejects a delayed duplicate of the acquire with this token
if sent then h.ended = math.max(h.ended, now - ago) end
ask(h, delay)
h.notbefore = math.max(h.notbefore, now + hold)
save(KEYS[1], h)
return { h.back, h.aside }
