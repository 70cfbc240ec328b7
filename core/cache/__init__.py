"""Answers that are kept: what the configuration and a comment ask for, and the rules between them."""
