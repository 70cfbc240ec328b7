"""The connection pools: which connection runs an execution, and how long executions wait for one.

Pipelined pools have few connections with many executions in flight on each. The dedicated pool has one execution at a
time on each. Both are bounded: an execution that finds no connection waits in a bounded queue for a bounded time, and
if the queue is full, it is refused at once.
"""
