"""Connections that one request holds for several commands (`pools.dedicated.DedicatedPool.hold`)."""
