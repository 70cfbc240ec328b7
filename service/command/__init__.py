"""What the command `rowcall` can do: one module for each kind of thing, imported only when it is asked for."""
