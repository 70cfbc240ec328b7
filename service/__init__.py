"""Everything that touches the world: HTTP, database, files, clocks, processes."""
