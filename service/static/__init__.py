"""Files served beside the endpoints, and the values put into them (reference 06, 6, reference 04, 21)."""
