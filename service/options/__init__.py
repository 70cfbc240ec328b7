"""Options that combine sections of the configuration, or need files, the system or a warning. `Settings.read` returns
the others."""
