"""Protection of sessions and columns as data: the key ring."""
