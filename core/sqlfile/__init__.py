"""A `.sql` file as data: its statements, its parameters and the annotations of its comments. This is derived from the
text alone, without a database.

`splitting` finds statements and comments, `placeholders` the parameters, `statement_comments` the annotations of single
statements and parameters, `commands` the effects of statements on method and transaction, `session_effects` what a run
may leave in its session.
"""
