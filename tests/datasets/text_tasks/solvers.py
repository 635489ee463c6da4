"""What solvers of several tasks read and write."""

import math
import re


def read_runs(prompt):
    """Returns the numbers of an aligned prompt, and the digits of each.

    A factor has a word for each digit of the other number, such as x7 x7 x7;
    it is a single digit.
    """
    text = re.fullmatch(r"\$ (.+) =", prompt)[1].replace("^ ", "")
    # One word of a factor is left.
    text = re.sub(r"([xy]\d)( \1)+", r"\1", text)
    runs = [re.findall("[0-9]", run) for run in re.split("[+*]", text)]
    return (
        [int("".join(run)) for run in runs],
        [[*map(int, run)] for run in runs],
    )


def add(prompt):
    numbers, digits = read_runs(prompt)
    (width,) = {len(each) for each in digits}
    return write_reversed(sum(numbers), width + 1)


def multiply(prompt):
    numbers, digits = read_runs(prompt)
    if len(numbers) == 3:
        tens, units, number = numbers
        numbers = [10 * tens + units, number]
    return write_reversed(math.prod(numbers), sum(map(len, digits)))


def write_reversed(number, width):
    """Writes a number from right to left, with zeros at its end."""
    return " ".join(f"{number:0{width}d}"[::-1])
