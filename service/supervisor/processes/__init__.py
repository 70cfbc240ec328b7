"""The processes of the workers: started, watched, replaced, and updated to one schema snapshot."""
