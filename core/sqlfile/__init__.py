"""A `.sql` file as data: its statements, its parameters and what its comments say. Pure text work, no database.

`lexer` finds the pieces, `splitting` the statements and comments, `placeholders` the parameters, `notes` what comments
say about single statements and parameters, `commands` what a statement does to method and transaction.
"""
