"""What solvers of several tasks read and write."""

import re


def read_number(text):
    return int(text.replace(" ", ""))


def write_digits(number):
    return ("- " if number < 0 else "") + " ".join(str(abs(number)))


def read_words(prompt, verb):
    return re.fullmatch(rf"{verb}: (.+) \[SEP\]", prompt)[1].split()
