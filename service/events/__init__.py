"""Server-sent events: from a notice of a routine, over all workers of a host, to every stream whose subscriber may see
it.

A worker passes published events to the supervisor (`worker_feed`), which numbers them and passes them to the workers
that have streams (`hub`); each of these sends them (`broadcaster`, `stream`).
"""
