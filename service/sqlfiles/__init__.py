"""Files of SQL as endpoints: reading them, having the server describe them, running them
(docs/internals/behaviour/sql-files.md).

`describing` queries the server, `source` reads the folder and makes routines of files and descriptions, from which the
supervisor builds endpoints. `running` is used in workers.
"""
