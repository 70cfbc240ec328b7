"""Sections of the configuration as frozen dataclasses, whose fields declare the keys.

`declaration` has the decorator and the kinds of fields, `keys` the declared keys. `core.config` reads the objects.
"""
