"""What `trainers.analyze` finds out about a trained model."""
