"""Downloads: the row of a routine as a file."""
