"""Files of SQL as endpoints: reading them, having the server describe them, running them
(docs/internals/behaviour/sql-files.md).

`source` reads the folder, `parsing` its files; `describing` queries the server, and `reading` uses that to decide which
files are valid; `building` makes a routine of a file and its description. `running` is used in workers.
"""
