"""Sign-in through an external provider as data: providers, the page, profiles, ID tokens."""
