"""Clients in Dart, for Flutter and others (clients-28, clients-29): endpoints in, texts of files out."""
