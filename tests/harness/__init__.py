"""What the tests over real sockets stand on: real PostgreSQL servers, real databases, the real command.

Nothing in here imitates anything. `postgres` starts servers, `database` makes databases on them, `service` runs
`rowcall` as a user would, `raw_http` speaks HTTP byte by byte, `waiting` waits for conditions instead of sleeping.
"""
