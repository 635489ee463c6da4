"""Random expressions modulo 5 with brackets around every operation.

An expression of n tokens has one of these forms, where d is a digit:

    n = 1  d         n = 3  ( d )
    n = 2  - d       n = 4  ( - d )
    n > 4  ( expression operator expression )

The first of the two inner expressions has from 1 to n - 4 tokens; each number
is equally likely. Digits and operators are uniform.

Reference: Delétang et al., 2023. https://arxiv.org/abs/2207.02098
"""

import numpy as np
import tensorflow as tf

from datasets.tasks.base import draw_symbols

PLUS, MINUS, TIMES, OPEN, CLOSE = 5, 6, 7, 8, 9


def draw_expressions(seed, batch_size, length, number_of_operators):
    """Draws expressions and evaluates them.

    Args:
        seed: int64 tensor `(2,)`.
        batch_size: int or scalar int tensor. Number of expressions B.
        length: int or scalar int tensor, at least 1. Number of tokens n of
            each expression.
        number_of_operators: 2 for `+` and `-`, 3 for `+`, `-` and `*`.

    Returns:
        Two int32 tensors: token ids `(B, n)`, and values from 0 to 4 `(B, 1)`.
    """
    digit_seed, operator_seed, split_seed = tf.unstack(
        tf.random.split(seed, 3, alg="philox")
    )
    digits = draw_symbols(digit_seed, batch_size, length, 5)
    # An operation uses the operator and the split drawn for its first token.
    # The range of splits is so large that the remainders computed below are
    # very nearly uniform.
    operators = PLUS + draw_symbols(
        operator_seed, batch_size, length, number_of_operators
    )
    splits = draw_symbols(split_seed, batch_size, length, 2**31 - 1)
    place = tf.zeros_like(digits) + tf.range(length)

    def unfold(depth, tokens, start, size, operator, first, second):
        """Writes the brackets and operators of all expressions at one depth.

        All tensors are `(B, n)`. For each token, `start` and `size` are the
        first token and the size of the innermost expression found so far that
        contains it; `size` is 0 once the token is written. For the first token
        of each expression, `operator`, `first` and `second` are the operator
        and the first tokens of the two operands.
        """
        offset = place - start
        negation, operation = size == 2, size > 4
        split = tf.gather(splits, start, batch_dims=1)
        inner = tf.where(
            operation, 1 + split % tf.maximum(size - 4, 1), size // 2
        )
        opening = (size > 1) & (offset == 0)
        joint = operation & (offset == inner + 1)
        closing = (size > 2) & (offset == size - 1)
        tokens = tf.where(opening, tf.where(negation, MINUS, OPEN), tokens)
        tokens = tf.where(
            joint, tf.gather(operators, start, batch_dims=1), tokens
        )
        tokens = tf.where(closing, CLOSE, tokens)

        # -d is 0 - d, and (d) is d + 0; the zero is after the last token.
        alone = tf.where(negation, MINUS, PLUS)
        operator_here = tf.where(operation, operators, alone)
        first_here = tf.where(negation, length, start + 1)
        second_alone = tf.where(negation, start + 1, length)
        second_here = tf.where(operation, start + inner + 2, second_alone)

        written = opening | joint | closing | (size < 2)
        in_second = offset > inner + 1
        inner_start = tf.where(in_second, start + inner + 2, start + 1)
        inner_size = tf.where(in_second, size - inner - 3, inner)
        return (
            depth + 1,
            tokens,
            tf.where(written, place, inner_start),
            tf.where(written, 0, inner_size),
            tf.where(opening, operator_here, operator),
            tf.where(opening, first_here, first),
            tf.where(opening, second_here, second),
        )

    zeros = tf.zeros_like(digits)
    depth, tokens, _, _, operator, first, second = tf.while_loop(
        lambda depth, tokens, start, size, *_: tf.reduce_any(size > 1),
        unfold,
        (0, digits, zeros, zeros + length, zeros, zeros, zeros),
    )

    def evaluate(values):
        """Evaluates each operation from the values of its operands."""
        values = tf.pad(values, [[0, 0], [0, 1]])
        left = tf.gather(values, first, batch_dims=1)
        right = tf.gather(values, second, batch_dims=1)
        results = tf.where(
            operator == PLUS,
            left + right,
            tf.where(operator == MINUS, left - right, left * right),
        )
        return (tf.where(operator == 0, digits, results % 5),)

    # After each round, the values of operations one level further out are
    # correct.
    (values,) = tf.while_loop(
        lambda values: True, evaluate, (digits,), maximum_iterations=depth
    )
    return tokens, values[:, :1]


def compute_value_probabilities(length, number_of_operators):
    """Computes the probabilities of the values of a random expression.

    Args:
        length: int, at least 1. Number of tokens of the expression.
        number_of_operators: 2 for `+` and `-`, 3 for `+`, `-` and `*`.

    Returns:
        float64 array `(5,)`: the probabilities of 0 to 4.
    """
    probabilities = np.full((length + 1, 5), 1 / 5)
    values = np.arange(5)
    results = (
        values[:, np.newaxis] + values,
        values[:, np.newaxis] - values,
        values[:, np.newaxis] * values,
    )[:number_of_operators]
    for size in range(5, length + 1):
        first = probabilities[1 : size - 3]
        operands = first.T @ first[::-1] / len(first)
        probabilities[size] = np.mean(
            [
                np.bincount(result.ravel() % 5, operands.ravel())
                for result in results
            ],
            axis=0,
        )
    return probabilities[length]
