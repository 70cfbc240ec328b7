"""Static files, and values in their placeholders (static-files-1 to static-files-6)."""
