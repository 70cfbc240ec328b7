"""Files of SQL as endpoints: finding and reading them, having the server describe them, running them
(docs/internals/behaviour/sql-files.md).

`files` reads the folder, `describing` asks the server, `source` makes of both what the supervisor builds endpoints
from, `watching` notices changes. `running` is the worker's side.
"""
