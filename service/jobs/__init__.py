"""Jobs: calls of endpoints that run later, in a worker of any host. A failed attempt is repeated, and the work of a job
is never done twice."""
