"""Cross-host transports of events. Each host numbers its own events, so that duplicates are recognised by their
numbers.
"""
