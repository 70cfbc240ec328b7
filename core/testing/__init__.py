"""SQL tests as data: parsed test files, results of runs, and reports."""
