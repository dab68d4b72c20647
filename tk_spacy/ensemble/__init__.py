"""Several parsers together: jackknifed lists, full trainings, merged lists, the arc combiner."""
