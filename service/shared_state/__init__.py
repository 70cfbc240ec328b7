"""What the workers of one host share without any other server: tables on shared memory, and a bus that wakes them.

A capability opens an environment of its own (`HostStore.environment`), and publishes and subscribes on the one bus
(`HostStore.bus`). docs/host-store.md says what is consistent when.
"""
