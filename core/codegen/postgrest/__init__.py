"""Types in TypeScript for clients of PostgREST's interface."""
