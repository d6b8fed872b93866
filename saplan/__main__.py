"""`python -m saplan` is the command line."""

from saplan.cli import program

program()
