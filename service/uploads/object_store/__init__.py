"""Files into S3 and what speaks its language."""
