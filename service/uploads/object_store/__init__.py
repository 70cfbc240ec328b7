"""Storing files in S3 and compatible object stores."""
