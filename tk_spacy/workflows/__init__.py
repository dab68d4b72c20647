"""What each command does, to be called from Python; the command line only shows it."""
