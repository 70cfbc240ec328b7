"""The query language of `queryable` endpoints: selection, filters, order and pages over the columns of results."""
