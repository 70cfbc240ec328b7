"""Slow, obvious Python twins of the Cython modules: independent implementations of the rules, which tests use as
oracles.

`types` describes types, `arrays` and `composites` parse and print PostgreSQL's text, `values` and `rows` write JSON.
"""
