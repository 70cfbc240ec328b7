"""The configuration shown to people and programs: in force, as a schema, as a page of the manual, as a first file."""
