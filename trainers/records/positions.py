"""What results say of the positions of sequences."""

import warnings

from keras_lengen.analysis import distance_coverage, position_coverage
from keras_lengen.layers import GridPositions, NoPE

PAIRS = 2**26
"""About how many pairs of tokens are counted at a length."""


def describe_positions(positions, problem, encoding):
    """Returns the first metric by position, and which positions are new.

    A position, or a distance between two tokens, is unseen where a test
    sequence has it and sampled training sequences do not.

    Args:
        positions: `{length: {position: value}}`; empty: not measured.
        problem: The `Problem`.
        encoding: The encoding of the model, which is asked for positions.

    Returns:
        A dict for `results.json`, empty if nothing was measured:
        `{metric}_by_position`, `unseen_positions_by_length` and
        `unseen_distances_by_length`, the last two as fractions of a sequence's
        positions and distances, where the encoding reads any.
    """
    if not positions:
        return {}
    by_length = {
        str(length): {str(n): float(value) for n, value in by.items()}
        for length, by in positions.items()
    }
    sampler = encoding.sampler
    described = {f"{problem.metrics[0].name}_by_position": by_length}
    if type(encoding) is NoPE or isinstance(sampler, GridPositions):
        return described
    for name, count in (
        ("positions", position_coverage),
        ("distances", distance_coverage),
    ):
        described[f"unseen_{name}_by_length"] = {
            str(length): _find_unseen(count, sampler, problem, length)
            for length in positions
        }
    return described


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
            draws=min(max(PAIRS // tokens**2, 8), 1000),
        )
    return coverage.unseen_share.item()
