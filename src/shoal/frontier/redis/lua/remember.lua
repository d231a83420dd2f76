#!lua
-- Remember fingerprints as done elsewhere. Refused as a whole when the server is out of memory.
--
-- uses     step seen
-- ARGV...  fingerprints
-- returns  the state
--
-- Atomic, because a fingerprint that is added meanwhile would fill a Bloom filter twice.

if not open_crawl() then
  return unknown()
end
local fingerprints, fresh = arguments_from(2), {}
if state ~= 'cancelled' then
  for i, is_seen in ipairs(seen_flags(fingerprints)) do
    if not is_seen then
      fresh[#fresh + 1] = fingerprints[i]
    end
  end
end
if #fresh > 0 then
  remember(fresh)
end
return state
