-- The fingerprints of all tasks ever accepted: exact, or in Bloom filters. Needs step.lua.
--
-- ID:seen:G      set     fingerprints, exact: 56 bytes each
-- ID:bloom:G     hash    layers: how many there are; count: how many fingerprints are in the last
--                        one; bits and hashes: the parameters that the filter was created with (the
--                        rules may have others by now)
-- ID:bloom:G:L   string  the bits of layer L: the first has POLICY.bloom_first bytes, each further
--                        one twice as many as the one before (up to bloom_most)
--
-- G is the generation. It is 0, or, if fingerprints are kept for a limited time (seen_for), the
-- number of the quarter of that time in which they came. A key expires when all of its fingerprints
-- are too old.
--
-- A fingerprint goes to the exact set until that has bloom_from of them, then to the filter.

local GENERATIONS = 4

local function generation()
  return rules.seen_for > 0 and math.floor(now / (rules.seen_for / GENERATIONS)) or 0
end

local function keep_for_a_time(key)
  if rules.seen_for > 0 then
    local lifetime = rules.seen_for * (GENERATIONS + 1) / GENERATIONS
    call('PEXPIRE', key, whole(math.ceil(lifetime / 1000)))
  end
end

-- The bits of a layer that stand for a fingerprint: double hashing, with a cubic term for
-- fingerprints whose halves have common factors.
local function bits_of(fingerprint, size, hashes)
  local a, b = struct.unpack('>I4I4', fingerprint)
  local bits = {}
  for i = 1, hashes do
    local mixed = (a + i * b + (i * i * i - i) / 6) % 4294967296
    bits[i] = math.floor(mixed * (size / 4294967296))
  end
  return bits
end

-- The Bloom filter of a generation; it has no layers if it does not exist.
local function read_bloom(g)
  local key = prefix .. 'bloom:' .. g
  local stored = call('HMGET', key, 'layers', 'count', 'bits', 'hashes')
  return {
    key = key,
    layers = tonumber(stored[1]) or 0,
    count = tonumber(stored[2]) or 0,
    bits = tonumber(stored[3]) or rules.bloom_bits, -- For a thousand fingerprints.
    hashes = tonumber(stored[4]) or rules.bloom_hashes,
  }
end

-- The size of a layer in bits.
local function size_of(layer)
  return 8 * math.min(POLICY.bloom_first * 2 ^ (layer - 1), POLICY.bloom_most)
end

local function is_full(bloom)
  return bloom.count * bloom.bits / 1000 >= size_of(bloom.layers)
end

local function in_layer(key, bits)
  for _, bit in ipairs(bits) do
    if call('GETBIT', key, whole(bit)) == 0 then
      return false
    end
  end
  return true
end

local function in_bloom(bloom, fingerprint)
  for layer = bloom.layers, 1, -1 do
    local bits = bits_of(fingerprint, size_of(layer), bloom.hashes)
    if in_layer(bloom.key .. ':' .. layer, bits) then
      return true
    end
  end
  return false
end

local function mark_seen_in_one(g, fingerprints, flags)
  for i, is_member in ipairs(ask_many('SMISMEMBER', prefix .. 'seen:' .. g, fingerprints)) do
    flags[i] = flags[i] or is_member == 1
  end
  local bloom = read_bloom(g)
  for i, fingerprint in ipairs(bloom.layers > 0 and fingerprints or {}) do
    flags[i] = flags[i] or in_bloom(bloom, fingerprint)
  end
end

-- For each fingerprint, whether it was accepted before.
local function seen_flags(fingerprints)
  local flags = {}
  local g = generation()
  mark_seen_in_one(g, fingerprints, flags)
  if rules.seen_for > 0 then
    for older = g - 1, g - GENERATIONS, -1 do
      mark_seen_in_one(older, fingerprints, flags)
    end
  end
  return flags
end

-- Add a layer. Its last bit is written at once: a string that grows would take up to twice as much
-- memory.
local function add_layer(bloom)
  bloom.layers, bloom.count = bloom.layers + 1, 0
  local key = bloom.key .. ':' .. bloom.layers
  call('SETBIT', key, whole(size_of(bloom.layers) - 1), 0)
  keep_for_a_time(key)
end

local function add_to_bloom(g, fingerprints, first)
  local bloom = read_bloom(g)
  for i = first, #fingerprints do
    if bloom.layers == 0 or is_full(bloom) then
      add_layer(bloom)
    end
    local commands = {}
    for _, bit in ipairs(bits_of(fingerprints[i], size_of(bloom.layers), bloom.hashes)) do
      commands[#commands + 1] = 'SET'
      commands[#commands + 1] = 'u1'
      commands[#commands + 1] = whole(bit)
      commands[#commands + 1] = 1
    end
    call_many('BITFIELD', bloom.key .. ':' .. bloom.layers, commands)
    bloom.count = bloom.count + 1
  end
  call('HSET', bloom.key, 'layers', bloom.layers, 'count', bloom.count)
  call('HSET', bloom.key, 'bits', bloom.bits, 'hashes', bloom.hashes)
  keep_for_a_time(bloom.key)
end

-- Store new fingerprints.
local function remember(fingerprints)
  local g = generation()
  local key = prefix .. 'seen:' .. g
  local room = #fingerprints
  if rules.bloom_from >= 0 then
    room = math.max(math.min(room, rules.bloom_from - call('SCARD', key)), 0)
  end
  local exact = fingerprints
  if room < #fingerprints then
    exact = {}
    for i = 1, room do
      exact[i] = fingerprints[i]
    end
  end
  call_many('SADD', key, exact)
  if room > 0 then
    keep_for_a_time(key)
  end
  if room < #fingerprints then
    add_to_bloom(g, fingerprints, room + 1)
  end
end

-- Let fingerprints expire that were accepted before the crawl had rules: the first seeds.
local function keep_first_seeds()
  local first = prefix .. 'seen:0'
  if rules.seen_for > 0 and call('EXISTS', first) == 1 then
    local key = prefix .. 'seen:' .. generation()
    call('RENAME', first, key)
    keep_for_a_time(key)
  end
end

local function forget_seen()
  local g = generation()
  for older = g, rules.seen_for > 0 and g - GENERATIONS or g, -1 do
    local bloom = read_bloom(older)
    for layer = 1, bloom.layers do
      call('UNLINK', bloom.key .. ':' .. layer)
    end
    call('UNLINK', prefix .. 'seen:' .. older, bloom.key)
  end
end
