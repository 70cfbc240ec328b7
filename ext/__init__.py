"""The hot path in Cython: bytes in, bytes out. These modules hold no policy, read no configuration and write no log."""
