"""All runs of a table: grids, states of runs, pools of processes."""
