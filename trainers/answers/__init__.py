"""Answers in words: options and problem of sequence_to_answer."""
