"""State that the workers of one host share without another server: tables in shared memory, and a message bus.

A capability opens an environment of its own (`HostState.environment`), and publishes and subscribes on the common bus
(`HostState.message_bus`). docs/host-store.md describes what is consistent when.
"""
