"""Accounts of users: password rules, lockout after failed sign-ins, one-time tokens and codes, and mail."""
