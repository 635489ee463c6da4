"""Options that the user types: flags, their values and what they name."""
