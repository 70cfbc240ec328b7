"""Talking to PostgreSQL: opening connections, the three lanes, what to do when something goes wrong.

`Database.begin` is the way in; `lanes` places requests on connections, `pace` decides which lane a routine is fast
enough for, `connector` opens connections. The rules are those at the end of docs/internals/behaviour/driver.md.
"""
