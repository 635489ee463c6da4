"""Documentation, and the script that writes the generated part of it."""
