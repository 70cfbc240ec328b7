"""Tables and views as routines: their operations and SQL."""
