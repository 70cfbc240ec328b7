"""Rate limits: the steps, and the stores of their counters."""
