"""Which connection runs a request, and who waits when there is none.

Shared: few connections, many requests in flight on each. Exclusive: one request at a time on each. Both are bounded:
what does not fit waits in a bounded queue for a bounded time, and what does not fit there is refused at once.
"""
