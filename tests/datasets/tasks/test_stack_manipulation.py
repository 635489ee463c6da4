"""Stack manipulation: its row."""

import itertools

import numpy as np

from tests.datasets.tasks import row


def final_stack(tokens):
    stack = []
    for token in tokens:
        if token != 2:
            stack.append({0: 0, 1: 1, 3: 0, 4: 1}[token])
        elif stack:
            stack.pop()
    return [*reversed(stack), 2, *[0] * (len(tokens) - len(stack))]


def stacks_and_instructions(length):
    if length == 1:
        return row.strings(2)(1)
    outcomes = {}
    for height in range(1, length):
        parts = [[0, 1]] * height + [[2, 3, 4]] * (length - height)
        inputs = list(itertools.product(*parts))
        outcomes |= dict.fromkeys(inputs, 1 / (length - 1) / len(inputs))
    return outcomes


def termination_after_many_pops(inputs):
    zeros, ones = (
        ((inputs == bit) | (inputs == 3 + bit)).sum(axis=1, keepdims=True)
        for bit in (0, 1)
    )
    pops = inputs.shape[1] - zeros - ones
    return [
        np.where(pops >= limit, 2, ones > zeros)
        for limit in range(inputs.shape[1] + 2)
    ]


ROW = row.TerminatedRow(
    published=(5, 3, row.CONTEXT_FREE, 0.5),
    oracle=final_stack,
    outcomes=stacks_and_instructions,
    floor_rules=termination_after_many_pops,
    output_length=lambda length: length + 1,
    enumerated_lengths=range(1, 8),
)
