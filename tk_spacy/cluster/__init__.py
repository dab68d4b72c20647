"""Tasks on the workers of a Dask cluster: this machine's, or many machines'."""
