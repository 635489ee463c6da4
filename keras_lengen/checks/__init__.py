"""Checks of arguments and inputs."""
