"""What the user typed: flags, their values and what they name."""
