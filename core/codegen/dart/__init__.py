"""Generates Dart clients, for Flutter and others (clients-28, clients-29). Endpoints in, texts of files out."""
