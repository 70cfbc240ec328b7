"""The parent process: sockets, workers, keys, and one schema snapshot for all workers."""
