"""Services that share the database or Redis: the console asks them for their state, and they answer each other."""
