"""The hot path in Cython: bytes in, bytes out. No policy, no configuration, no logging."""
