"""The schema `rowcall` in a database: what capabilities store there, installed by `rowcall --install`."""
