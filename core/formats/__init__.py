"""Table formats as data: what there is, what it is called, what files of it are named."""
