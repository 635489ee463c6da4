"""All runs of a table: grids, states of runs, workers that train them."""
