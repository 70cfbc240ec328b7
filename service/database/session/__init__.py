"""Session effects of routines: guards against unnoticed changes, and resets."""
