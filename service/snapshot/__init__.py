"""What is served: one reading of the database, and what notices that there is a newer one."""
