"""Windows and buckets that are counted in Redis, for several hosts: the algorithm of `core.limits.counting` as a
script.

The clock is that of Redis, so the clocks of the hosts may differ. If Redis is unavailable, each host counts by itself.
Concurrency is always counted by host, because a host that fails could not release its permits.
"""

from __future__ import annotations

import contextlib
import hashlib

from rowcall.core.limits.counting import Decision, Turn
from rowcall.core.limits.policy import Policy
from rowcall.service.limits.host_permits import HostPermits
from rowcall.service.shared_state.redis_connection import MALFORMED
from rowcall.service.shared_state.redis_link import LateLink, RedisUnavailableError

_DECIDE = """
local kind, permits, period = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local segments, added, queue = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HGETALL', KEYS[1])
local begin, number, missing, counts = now, 0, 0, {}
for i = 1, #state, 2 do
  if state[i] == 'b' then begin = tonumber(state[i + 1])
  elseif state[i] == 'n' then number = tonumber(state[i + 1])
  elseif state[i] == 'u' then missing = tonumber(state[i + 1])
  else counts[tonumber(state[i])] = tonumber(state[i + 1]) end
end
if kind ~= 'TokenBucket' then
  local length = period / segments
  local current = math.max(0, math.floor((now - begin) / length))
  local queued = 0
  for number, count in pairs(counts) do
    if number <= current - segments then
      redis.call('HDEL', KEYS[1], number)
      counts[number] = nil
    elseif number > current then queued = queued + count end
  end
  local crowd = 0
  for back = 0, segments - 1 do crowd = crowd + (counts[current - back] or 0) end
  local chosen, last = current, current
  while last < chosen + segments do
    if crowd >= permits then chosen = last + 1 end
    last = last + 1
    crowd = crowd + (counts[last] or 0) - (counts[last - segments] or 0)
  end
  local wait = 0
  if chosen > current then wait = math.ceil(begin + chosen * length - now) end
  if chosen > current and queued >= queue then return {0, wait, begin, chosen} end
  redis.call('HSET', KEYS[1], 'b', begin, chosen, (counts[chosen] or 0) + 1)
  redis.call('PEXPIRE', KEYS[1], math.ceil(2 * period + wait))
  return {1, wait, begin, chosen}
end
local current = math.max(number, math.floor((now - begin) / period))
local passed, owed = {}, 0
for later, taken in pairs(counts) do
  if later <= current then passed[#passed + 1] = later else owed = owed + taken end
end
table.sort(passed)
for _, past in ipairs(passed) do
  missing = math.max(0, missing - (past - number) * added) + counts[past]
  number = past
  redis.call('HDEL', KEYS[1], past)
end
missing = math.max(0, missing - (current - number) * added)
if missing <= 0 and owed <= 0 then
  redis.call('DEL', KEYS[1])
  begin, current, counts = now, 0, {}
end
local wait, chosen = 0, current
if missing < permits then
  missing = missing + 1
else
  local room = math.min(added, permits)
  repeat chosen = chosen + 1 until (counts[chosen] or 0) < room
  wait = math.ceil(begin + chosen * period - now)
  if owed >= queue then return {0, wait, begin, chosen} end
  owed = owed + 1
  redis.call('HSET', KEYS[1], chosen, (counts[chosen] or 0) + 1)
end
redis.call('HSET', KEYS[1], 'b', begin, 'n', current, 'u', missing)
redis.call('PEXPIRE', KEYS[1], math.ceil((math.ceil((missing + owed) / added) + 2) * period))
return {1, wait, begin, chosen}
"""
_GIVE_BACK = """
if redis.call('HGET', KEYS[1], 'b') ~= ARGV[1] then return 0 end
local field = ARGV[2]
local number = redis.call('HGET', KEYS[1], 'n')
if number and tonumber(field) <= tonumber(number) then field = 'u' end
if tonumber(redis.call('HGET', KEYS[1], field) or 0) <= 0 then return 0 end
redis.call('HINCRBY', KEYS[1], field, -1)
return 1
"""


class _RedisTurn(Turn):
    """A turn in Redis; other turns are in the shared state of the host."""


class RedisPermits:
    """Permits in Redis. To be created in the running event loop."""

    def __init__(self, address: str, host: HostPermits) -> None:
        self._host = host
        self._redis = LateLink(address, "RateLimiterOptions:RedisConfiguration", "each host counts for itself")

    async def request_permit(self, policy: Policy, caller: str) -> Decision:
        """Request a permit of a window or bucket in Redis, or of this host if Redis is unavailable. policy: must not be
        a concurrency limit."""
        link = await self._redis.link()
        if link is None:
            return self._host.request_permit(policy, caller)
        numbers = (policy.permits, int(policy.seconds * 1000), policy.segments, policy.added, policy.queue)
        try:
            allowed, wait, begin, number = await link.run(
                _DECIDE, [_name(policy, caller)], [policy.kind.value.encode(), *numbers]
            )
            wait = wait / 1000
        except (RedisUnavailableError, *MALFORMED):
            return self._host.request_permit(policy, caller)
        return Decision(bool(allowed), wait, _RedisTurn(begin, number))

    async def put_back(self, policy: Policy, caller: str, turn: Turn) -> None:
        """Put back the permit that a request has waited for and does not use. turn: of the decision of
        `request_permit`; says whether the permit is in Redis or in the shared state of the host."""
        if not isinstance(turn, _RedisTurn):
            self._host.put_back(policy, caller, turn)
            return
        link = await self._redis.link()
        if link is not None:
            with contextlib.suppress(RedisUnavailableError):
                await link.run(_GIVE_BACK, [_name(policy, caller)], [int(turn.begin), turn.number])


def _name(policy: Policy, caller: str) -> bytes:
    counter_name = f"{len(policy.name)}:{policy.name}{caller}".encode(errors="surrogateescape")
    return b"rowcall:permits:" + hashlib.sha256(counter_name).hexdigest().encode()
