"""What frozen values have in common: how they travel to workers, and how equal ones are made once."""
