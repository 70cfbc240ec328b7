"""What operators may change with `Console:AllowActions`."""
