"""Applications to start from, which `rowcall new` copies: plain files, without code of this package."""
