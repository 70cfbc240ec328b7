"""What all of ext stands on: the growing buffer, the functions of libpq, text written in C."""
