"""Connections that one request holds for several commands (`pools.dedicated_pool.DedicatedPool.hold`)."""
