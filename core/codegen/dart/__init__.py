"""Clients in Dart, for Flutter and others (reference 07, 19): endpoints in, texts of files out."""
