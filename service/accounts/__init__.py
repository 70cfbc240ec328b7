"""One-time tokens and mail, in the transaction of the routine."""
