"""Harness of the tests over real sockets: real PostgreSQL servers, real databases, the real command.

There are no mocks. `postgres` starts servers, `database` creates databases on them, `service` runs `rowcall` as a user
would, `raw_http` sends HTTP as bytes, `waiting` waits for conditions instead of sleeping.
"""
