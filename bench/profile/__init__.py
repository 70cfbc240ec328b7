"""Where the time of one endpoint or one statement goes."""
