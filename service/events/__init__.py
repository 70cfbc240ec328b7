"""Server-sent events: from a notice of a routine, over all workers of a host, to every stream that may see it.

A worker hands what is published to the supervisor (`feed`), which numbers it and hands it to the workers that have
streams (`hub`); each of them sends it on (`broadcaster`, `stream`).
"""
