"""An endpoint and everything that is part of one: parameters, options, templates, result shape, call."""
