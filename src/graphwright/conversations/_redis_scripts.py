"""What the Redis store does, as scripts that Redis runs one at a time: each of them happens as a whole.

Every script has the key prefix, the session id and the time in its first arguments. A session is the hash
`session:ID` and the sorted set `messages:ID`, whose members are `role:seq|body`. `index` and `index:OWNER` hold the
ids by the time of their last write, `expiring` holds `OWNER NUL ID` by the time of expiry. An owner is `0` for nobody
and `1` with the user id for a user. A script checks everything before it changes anything, as nothing is rolled back.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

__all__ = ["CLAIM", "CLEANUP", "DELETE", "GET", "LIST", "LOAD", "PURGE", "UPDATE", "WRITE", "LuaScript"]

_SHARED = r"""
local P, S, NOW = ARGV[1], ARGV[2], ARGV[3]
local function hash(id) return P .. 'session:' .. id end
local function list(id) return P .. 'messages:' .. id end
local function index(owner) return P .. 'index:' .. owner end
local function whole(number) return string.format('%.0f', number) end

local function remove(id, owner)
  redis.call('DEL', hash(id), list(id))
  redis.call('ZREM', P .. 'index', id)
  redis.call('ZREM', index(owner), id)
  redis.call('ZREM', P .. 'expiring', owner .. '\0' .. id)
end

local function touch(id, owner, at, expires)
  redis.call('ZADD', P .. 'index', at, id)
  redis.call('ZADD', index(owner), at, id)
  if expires == '0' then
    redis.call('ZREM', P .. 'expiring', owner .. '\0' .. id)
    redis.call('PERSIST', hash(id))
    redis.call('PERSIST', list(id))
  else
    redis.call('ZADD', P .. 'expiring', expires, owner .. '\0' .. id)
    local at_ms = whole(math.floor(tonumber(expires) / 1000) + 1)
    redis.call('PEXPIREAT', hash(id), at_ms)
    redis.call('PEXPIREAT', list(id), at_ms)
  end
end

local function over(expires) return expires ~= '0' and tonumber(expires) <= tonumber(NOW) end

local function live(id)
  local flat = redis.call('HGETALL', hash(id))
  if #flat == 0 then return nil end
  local found = {}
  for place = 1, #flat, 2 do found[flat[place]] = flat[place + 1] end
  if over(found.expires_at) then
    remove(id, found.user_id)
    return nil
  end
  return found, flat
end

local function purge()
  local count = 0
  while true do
    local due = redis.call('ZRANGEBYSCORE', P .. 'expiring', '-inf', NOW, 'LIMIT', 0, 500)
    if #due == 0 then return count end
    for _, member in ipairs(due) do
      local owner, id = string.match(member, '^(.-)%z(.*)$')
      local expires = redis.call('HGET', hash(id), 'expires_at')
      redis.call('ZREM', P .. 'expiring', member)
      if not expires or over(expires) then
        remove(id, owner)
        count = count + 1
      end
    end
  end
end

local function create(id, owner, expires)
  purge()
  redis.call('DEL', list(id))
  redis.call('HSET', hash(id), 'user_id', owner, 'metadata', '{}', 'message_count', '0', 'version', '0',
    'created_at', NOW, 'updated_at', NOW, 'expires_at', expires, 'question', '0', 'head', '0')
  touch(id, owner, NOW, expires)
end

-- Where the newest `limit` messages can be cut; the same rule as in `_window.py`.
local function window_start(members, limit, question, head)
  local count = math.min(#members, limit)
  local start = nil
  local asked = false
  local function scan(upto)
    start = nil
    for place = 1, upto do
      local role, seq = string.match(members[place], '^(%a+):(%d+)|')
      if role ~= 'tool' then start = tonumber(seq) end
      if tonumber(seq) == question then asked = true end
    end
  end
  scan(count)
  if question > 0 and limit > 1 and not asked then scan(math.min(count, limit - 1)) end
  return start or head
end
"""

_LOAD = r"""
local found = live(S)
if not found then return {} end
local after, last = tonumber(ARGV[4]), tonumber(ARGV[5])
local first = whole(after + 1)
if last == 0 then return redis.call('ZRANGEBYSCORE', list(S), first, '+inf') end
local members = redis.call('ZREVRANGEBYSCORE', list(S), '+inf', first, 'LIMIT', 0, last + 1)
if #members <= last then return redis.call('ZRANGEBYSCORE', list(S), first, '+inf') end
local question, head = tonumber(found.question), tonumber(found.head)
if question <= after then question = 0 end
if head <= after then head = after + 1 end
local start = window_start(members, last, question, head)
local kept = redis.call('ZRANGEBYSCORE', list(S), whole(start), '+inf')
if question > 0 and question < start then
  local asked = redis.call('ZRANGEBYSCORE', list(S), whole(question), whole(question))
  table.insert(kept, 1, asked[1])
end
return kept
"""

_WRITE = r"""
local mode, name, expected, wanted, title = ARGV[4], ARGV[5], tonumber(ARGV[6]), ARGV[7], ARGV[8]
local limit, expires = tonumber(ARGV[9]), ARGV[10]
local done = redis.call('GET', P .. 'op:' .. name)
if done then return {'ok', done} end

local found = live(S)
if found and wanted ~= '' and found.user_id ~= wanted then return {'denied', '0'} end
local version = found and tonumber(found.version) or 0
local function member(number, base)
  return ARGV[9 + 2 * number] .. ':' .. whole(base + number) .. '|' .. ARGV[10 + 2 * number]
end
local count = (#ARGV - 10) / 2

if expected >= 0 and version ~= expected then
  local there = redis.call('ZRANGEBYSCORE', list(S), whole(expected + 1), whole(expected + count))
  local same = count > 0 and #there == count
  for number = 1, #there do same = same and there[number] == member(number, expected) end
  if same then return {'ok', whole(expected + count)} end
  return {'conflict', whole(version)}
end

if not found then
  create(S, wanted == '' and '0' or wanted, expires)
  found = live(S)
end
local question, head = tonumber(found.question), tonumber(found.head)
if mode == 'save' then
  redis.call('DEL', list(S))
  question, head = 0, 0
end
for number = 1, count do
  local role = ARGV[9 + 2 * number]
  redis.call('ZADD', list(S), whole(version + number), member(number, version))
  if role == 'user' then question = version + number end
  if role ~= 'tool' then head = version + number end
end
if limit > 0 and redis.call('ZCARD', list(S)) > limit then
  local members = redis.call('ZREVRANGE', list(S), 0, limit - 1)
  local start = window_start(members, limit, question, head)
  if question > 0 and question < start then
    redis.call('ZREMRANGEBYSCORE', list(S), '-inf', '(' .. whole(question))
    redis.call('ZREMRANGEBYSCORE', list(S), '(' .. whole(question), '(' .. whole(start))
  else
    redis.call('ZREMRANGEBYSCORE', list(S), '-inf', '(' .. whole(start))
  end
end
version = version + count
if mode == 'save' and count == 0 then version = version + 1 end
if expires == '0' then expires = found.expires_at end
redis.call('HSET', hash(S), 'version', whole(version), 'message_count', redis.call('ZCARD', list(S)),
  'updated_at', NOW, 'expires_at', expires, 'question', whole(question), 'head', whole(head))
if title ~= '' then redis.call('HSETNX', hash(S), 'title', string.sub(title, 2)) end
touch(S, found.user_id, NOW, expires)
redis.call('SET', P .. 'op:' .. name, whole(version), 'EX', 600)
return {'ok', whole(version)}
"""

_CLAIM = r"""
local owner, adopt, expires = ARGV[4], ARGV[5], ARGV[6]
local found = live(S)
if not found then create(S, owner, expires) end
if found and found.user_id == '0' and adopt == '1' and owner ~= '0' then
  redis.call('ZREM', index('0'), S)
  redis.call('ZREM', P .. 'expiring', '0\0' .. S)
  redis.call('HSET', hash(S), 'user_id', owner)
  touch(S, owner, found.updated_at, found.expires_at)
end
return redis.call('HGETALL', hash(S))
"""

_GET = r"""
local _, flat = live(S)
return flat or {}
"""

_UPDATE = r"""
local found = live(S)
if not found then return 0 end
local owner, expires = found.user_id, found.expires_at
for place = 4, #ARGV, 2 do
  local name, value = ARGV[place], ARGV[place + 1]
  if name == '-title' then
    redis.call('HDEL', hash(S), 'title')
  elseif name == 'expires_at' then
    expires = value == '' and '0' or value
  else
    if name == 'user_id' then owner = value end
    redis.call('HSET', hash(S), name, value)
  end
end
redis.call('ZREM', index(found.user_id), S)
redis.call('ZREM', P .. 'expiring', found.user_id .. '\0' .. S)
redis.call('HSET', hash(S), 'updated_at', NOW, 'expires_at', expires)
touch(S, owner, NOW, expires)
return 1
"""

_DELETE = r"""
local found = live(S)
if not found then return 0 end
remove(S, found.user_id)
return 1
"""

_LIST = r"""
purge()
local owner, limit, offset = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local page = {}
if limit == 0 then return page end
local key = owner == '' and P .. 'index' or index(owner)
for _, id in ipairs(redis.call('ZREVRANGE', key, offset, offset + limit - 1)) do
  local flat = redis.call('HGETALL', hash(id))
  if #flat > 0 then table.insert(page, {id, flat}) end
end
return page
"""

_CLEANUP = "return purge()"

_PURGE = r"""
purge()
local ids = redis.call('ZRANGE', index(ARGV[4]), 0, -1)
for _, id in ipairs(ids) do remove(id, ARGV[4]) end
return #ids
"""


@dataclass(frozen=True)
class LuaScript:
    """A script and the name under which Redis keeps it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest())


LOAD = LuaScript(_SHARED + _LOAD)
WRITE = LuaScript(_SHARED + _WRITE)
CLAIM = LuaScript(_SHARED + _CLAIM)
GET = LuaScript(_SHARED + _GET)
UPDATE = LuaScript(_SHARED + _UPDATE)
DELETE = LuaScript(_SHARED + _DELETE)
LIST = LuaScript(_SHARED + _LIST)
CLEANUP = LuaScript(_SHARED + _CLEANUP)
PURGE = LuaScript(_SHARED + _PURGE)
