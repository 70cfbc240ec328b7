"""The processes of the workers: made, watched, started again, and given one edition."""
