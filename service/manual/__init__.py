"""The manual as a site: `site.zip` beside this file, written by `make site`, and the server for `rowcall --docs`."""
