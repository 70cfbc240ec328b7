"""Generates clients in TypeScript, JavaScript, Dart and Python. Endpoints in, texts of files out, no I/O."""
