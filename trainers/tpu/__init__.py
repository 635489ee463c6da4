"""Google's TPU compiler, and the programs it compiles."""
