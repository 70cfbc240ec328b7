"""What the workers do at the moment: their event streams and the traces of their requests."""
