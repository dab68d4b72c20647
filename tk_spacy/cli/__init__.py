"""The command line: one file a command.

Each command is two functions: NAME_cli declares the options and shows the result, and a function of
`workflows` works and can be imported and tested.
Nothing heavy is imported before a command runs, so that `--help` answers at once.
"""

import os

# Threads that wait for work sleep.  Spinning, OpenMP's default, costs many times the work itself
# where other processes want the cores too; a user's own choice stands.  It is read when the first
# compiled module is loaded, hence before the import below.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from tk_spacy.cli.app import main

__all__ = ["main"]
