"""The parent process: sockets, workers, keys, one edition for all."""
