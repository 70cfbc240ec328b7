"""SQL of plans. Values are parameters; identifiers come from the catalogue or are quoted."""
