import itertools

from datasets.tasks.needle import Needle
from tests.datasets.tasks import row


def make_row(symbols, keys):
    def value_after_the_key(tokens):
        *haystack, query = tokens
        needles = sum(token >= symbols for token in haystack)
        assert needles == min(len(haystack) // 2, 4)
        assert haystack.count(query) == 1
        return [haystack[haystack.index(query) + 1]]

    def is_valid(tokens):
        *haystack, query = tokens
        found = [token for token in haystack if token >= symbols]
        before_symbols = sum(
            first >= symbols > second
            for first, second in itertools.pairwise(haystack)
        )
        distinct, needles = len(set(found)), min(len(haystack) // 2, 4)
        sizes = {len(found), distinct, before_symbols, needles}
        return query in found and len(sizes) == 1

    return row.Row(
        published=(symbols + keys, symbols, row.REGULAR, 1 / 16),
        oracle=value_after_the_key,
        outcomes=row.valid_strings(symbols + keys, is_valid, 3),
        floor_rules=row.most_frequent(range(symbols)),
        input_length=lambda length: max(length, 3),
        floor_examples=4096,
    )


ROW = row.with_small(make_row(16, 16), make_row(2, 4), Needle, range(1, 7))
