"""Slow, obvious Python twins of the Cython modules: they state the rules once more, in another way, as an oracle.

`types` says what a type is, `arrays` and `composites` read and print PostgreSQL's text, `values` and `rows` write JSON.
"""
