"""Sign-in through an outside provider as data: providers, the page, profiles, ID tokens."""
