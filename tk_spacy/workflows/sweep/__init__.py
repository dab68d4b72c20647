"""Many trainings by a table of runs, in processes or on a cluster, resumable."""
