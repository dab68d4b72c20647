"""The version of the package, which builds, models and commands name."""

__version__ = "0.1.0"
