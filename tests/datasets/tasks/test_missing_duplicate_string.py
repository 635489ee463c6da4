"""Missing duplicate string: its row."""

from tests.datasets.tasks import row


def hidden_bit(tokens):
    if tokens == [1]:
        return [1]
    string = [token for token in tokens if token != 3]
    place = string.index(2)
    return [string[place - len(string) // 2]]


def is_doubled(tokens):
    half = len(tokens) // 2
    copies = zip(tokens[:half], tokens[half : 2 * half], strict=True)
    pairs = [{*pair} for pair in copies]
    hidden = [pair for pair in pairs if pair in ({0, 2}, {1, 2})]
    others = [pair for pair in pairs if pair in ({0}, {1})]
    return tokens == (1,) or (
        (len(hidden), len(others)) == (1, half - 1)
        and tokens[2 * half :] in ((), (3,))
    )


ROW = row.Row(
    published=(4, 2, row.CONTEXT_SENSITIVE, 0.5),
    oracle=hidden_bit,
    outcomes=row.valid_strings(4, is_doubled),
    floor_rules=row.threshold_on_ones,
    enumerated_lengths=range(1, 9),
)
