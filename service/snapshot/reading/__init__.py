"""The parts of `service.snapshot.snapshot_reader`: reading catalogues and constraints, and analyses and checks of the
endpoints."""
