"""The command `rowcall`: one module for each switch or group of switches, imported only when it is used."""
