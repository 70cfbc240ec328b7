"""`Auth` and what belongs to it: the schemes, and what is configured and does not do what it says."""
