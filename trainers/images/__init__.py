"""Images: options and problem of imagenet."""
