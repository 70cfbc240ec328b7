"""Files served beside the endpoints, and the values put into them (static-files-1 to static-files-6,
static-files-4)."""
