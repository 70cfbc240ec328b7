"""Options of one capability each, for `service.options.from_settings`."""
