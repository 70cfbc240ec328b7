"""Properties of frozen values: pickling for workers, and one shared object for equal values."""
