"""The command line: one file a command.

Each command is two functions: NAME_cli declares the options and shows the result, and a function of
the library (`pipeline`, `batch`, ...) or NAME beside it works and can be imported and tested.
Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

from tk_spacy.cli.app import main

__all__ = ["main"]
