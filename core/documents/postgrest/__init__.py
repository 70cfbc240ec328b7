"""Relations and functions of PostgREST's interface in documents: as tools of language models, and in OpenAPI."""
