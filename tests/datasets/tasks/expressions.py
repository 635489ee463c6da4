"""Expressions and their values, for the rows of several tasks."""

import itertools


def value(tokens):
    return [eval("".join("01234+-*()"[token] for token in tokens)) % 5]


def bracketed(size, operators):
    if size < 5:
        form = ["{}", "-{}", "({})", "(-{})"][size - 1]
        return {form.format(digit): 1 / 5 for digit in range(5)}
    outcomes = {}
    for left in range(1, size - 3):
        firsts = bracketed(left, operators)
        seconds = bracketed(size - 3 - left, operators)
        for parts in itertools.product(firsts, operators, seconds):
            probability = firsts[parts[0]] * seconds[parts[2]]
            probability /= (size - 4) * len(operators)
            outcomes[f"({''.join(parts)})"] = probability
    return outcomes
