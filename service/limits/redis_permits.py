"""Windows and buckets counted in Redis, for several hosts together: `core.limits.counting` once more, as one script.

The clock is Redis's, so hosts need not agree on the time. When Redis is gone, each host counts for itself. Who is
inside at one time is always counted on each host: one that dies could not give its permits back.
"""

from __future__ import annotations

import hashlib

from rowcall.core.limits.counting import Decision
from rowcall.core.limits.policy import Policy
from rowcall.service.limits.host_permits import HostPermits
from rowcall.service.store.redis_link import GoneError, LateLink

_DECIDE = """
local kind, permits, period = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local segments, added, queue = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local state = redis.call('HGETALL', KEYS[1])
local begin, used, counts = now, 0, {}
for i = 1, #state, 2 do
  if state[i] == 'b' then begin = tonumber(state[i + 1])
  elseif state[i] == 'u' then used = tonumber(state[i + 1])
  else counts[tonumber(state[i])] = tonumber(state[i + 1]) end
end
if kind == 'SlidingWindow' then
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
  if chosen > current and queued >= queue then return {0, wait} end
  redis.call('HSET', KEYS[1], 'b', begin, chosen, (counts[chosen] or 0) + 1)
  redis.call('PEXPIRE', KEYS[1], math.ceil(2 * period + wait))
  return {1, wait}
end
local bucket = kind == 'TokenBucket'
local back = bucket and added or permits
local passed = math.max(0, math.floor((now - begin) / period))
used = math.max(0, used - passed * back)
begin = begin + passed * period
if bucket and used <= 0 then begin = now end
local wait = 0
if used >= permits then
  if bucket then wait = begin + math.ceil((used - permits + 1) / added) * period - now
  else wait = begin + math.floor(used / permits) * period - now end
  if used >= permits + queue then return {0, math.ceil(wait)} end
end
redis.call('HSET', KEYS[1], 'b', begin, 'u', used + 1)
redis.call('PEXPIRE', KEYS[1], math.ceil((math.ceil((used + 1) / back) + 1) * period))
return {1, math.ceil(wait)}
"""


class RedisPermits:
    """To be made in the running event loop."""

    def __init__(self, address: str, host: HostPermits) -> None:
        self._host = host
        self._redis = LateLink(address, "RateLimiterOptions:RedisConfiguration", "each host counts for itself")

    async def ask(self, policy: Policy, caller: str) -> Decision:
        link = await self._redis.link()
        if link is None:
            return self._host.ask(policy, caller)
        name = hashlib.sha256(f"{len(policy.name)}:{policy.name}{caller}".encode(errors="surrogateescape")).hexdigest()
        numbers = (policy.permits, int(policy.seconds * 1000), policy.segments, policy.added, policy.queue)
        try:
            allowed, wait = await link.run(
                _DECIDE, [b"rowcall:permits:" + name.encode()], [policy.kind.value.encode(), *numbers]
            )
        except GoneError:
            return self._host.ask(policy, caller)
        return Decision(bool(allowed), wait / 1000)
