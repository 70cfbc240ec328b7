"""Turn query strings, JSON bodies and CSV files into arguments of statements, in Cython."""
