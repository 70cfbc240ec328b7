"""Access to PostgreSQL: connections, the connection pools, pool selection, and the handling of failed executions.

`Database.begin` is the entry point. `pools` holds the connections, `pools.pool_assignment` decides which routines are
fast enough for a pipelined pool, `connector` opens connections. The rules are at the end of
docs/internals/behaviour/driver.md.
"""
