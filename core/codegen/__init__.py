"""Clients made from endpoints: names, types, functions, and the files they stand in. Endpoints in, texts out."""
