"""Sections whose keys belong to no single capability, or are read one by one."""
