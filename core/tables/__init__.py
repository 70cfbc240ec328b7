"""Tables and views as routines: their operations and the SQL of these."""
