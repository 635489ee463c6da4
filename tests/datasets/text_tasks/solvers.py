"""What solvers of several tasks read and write."""

import re


def read_number(text):
    return int(text.replace(" ", ""))


def write_digits(number):
    return ("- " if number < 0 else "") + " ".join(str(abs(number)))


def read_words(prompt, verb):
    return re.fullmatch(rf"{verb}: (.+) \[SEP\]", prompt)[1].split()


def read_runs(prompt):
    """Returns the numbers of an aligned prompt, and the digits of each.

    A factor has a word for each digit of the other number, such as x7 x7 x7;
    it is a single digit.
    """
    text = re.fullmatch(r"\$ (.+) =", prompt)[1].replace("^ ", "")
    digits = []
    for run in re.split(r" [+*] ", text):
        found = [int(re.sub("^[xyp]", "", word)) for word in run.split()]
        if run[0] in "xy":
            assert len(set(found)) == 1
            found = found[:1]
        digits.append(found)
    return [int("".join(map(str, each))) for each in digits], digits


def write_reversed(number, width):
    """Writes a number from right to left, with zeros at its end."""
    return " ".join(f"{number:0{width}d}"[::-1])
