"""The command line: parse, call, print. No rules live here, and no room is loaded unasked."""
