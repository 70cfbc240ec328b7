"""What a reading of the databases consists of, for `service.snapshot.snapshot_reader`."""
