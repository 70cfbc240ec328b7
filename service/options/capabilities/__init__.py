"""Settings → the options of capabilities, a module each."""
