"""What one training step and one evaluation compute."""
