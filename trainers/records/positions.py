"""What results say of the positions of sequences."""

import warnings

from keras_lengen.analysis import distance_coverage, position_coverage
from keras_lengen.layers import GridPositions, NoPE

DRAWS = 100
"""Number of sequences of each length that are drawn to count positions."""

PAIRS = 2**26
"""About how many distances are counted at most, in fewer sequences."""


def describe_positions(positions, problem):
    """Returns the first metric by position, in the form of `results.json`.

    Args:
        positions: `{length: {position: value}}`; empty: not measured.
        problem: The `Problem`.
    """
    by_length = {
        str(length): {str(n): float(value) for n, value in by.items()}
        for length, by in positions.items()
    }
    name = f"{problem.metrics[0].name}_by_position"
    return {name: by_length} if by_length else {}


def describe_coverage(problem, encoding):
    """Returns which part of a sequence is new, at each length.

    A position, or a distance between two tokens, is unseen where sequences of
    that length have it and drawn training sequences do not.

    Args:
        problem: The `Problem`.
        encoding: The encoding of the model, which has the sampler.

    Returns:
        `unseen_positions_by_length` and `unseen_distances_by_length`, fractions
        of a sequence's positions and distances, in the form of `results.json`;
        empty if the encoding reads no positions, or rows and columns, or if
        positions depend on the tokens.
    """
    sampler = encoding.sampler
    reads_more = isinstance(sampler, GridPositions) or sampler.reads_tokens
    if type(encoding) is NoPE or reads_more:
        return {}
    return {
        f"unseen_{name}_by_length": {
            str(length): _find_unseen(count, sampler, problem, length)
            for length in problem.lengths
        }
        for name, count in (
            ("positions", position_coverage),
            ("distances", distance_coverage),
        )
    }


def _find_unseen(count, sampler, problem, length):
    tokens = problem.tokens(length)
    trained = problem.config.trained_lengths
    with warnings.catch_warnings():
        # The result says so.
        warnings.simplefilter("ignore", UserWarning)
        coverage = count(
            sampler,
            train_lengths=[problem.tokens(n) for n in trained],
            test_length=tokens,
            draws=min(max(PAIRS // tokens**2, 8), DRAWS),
        )
    return coverage.unseen_share.item()
