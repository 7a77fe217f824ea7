-- KEYS: epoch.
local since, fault = epoch(KEYS[1])
return fault or now - since
