"""The error types that mean "the user can put this right"."""


class UserError(ValueError):
    """A mistake of the user: a bad file, a wrong option, an unfit model.

    The command line prints its text as one line and exits with code 1; a program that calls
    tk-spacy can catch it.  Every other exception is a fault of the program.
    """


class OptionError(UserError):
    """An option that cannot be, as the command line itself finds them: exit code 2."""
