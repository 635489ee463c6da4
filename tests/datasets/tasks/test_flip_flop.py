import itertools

from tests.datasets.tasks import row


def last_written(tokens):
    for instruction, bit in reversed(list(itertools.pairwise(tokens))):
        if instruction == 2:
            return [bit]
    raise AssertionError("nothing was written")


def flip_flop_strings(length):
    outcomes = {}
    count = max(length // 2, 2) - 1
    for instructions in itertools.product([2, 3, 4], repeat=count - 1):
        for bits in itertools.product([0, 1], repeat=count):
            pairs = list(zip((2, *instructions), bits, strict=True))
            memory, probability = bits[0], 1 / 2
            for instruction, bit in pairs[1:]:
                if instruction == 2:
                    memory, probability = bit, probability * 0.1 / 2
                elif instruction == 3:
                    probability *= 0.8 / 2
                else:
                    probability *= 0.1 * (bit == memory)
            if probability:
                outcomes[(*itertools.chain(*pairs), 4)] = probability
    return outcomes


def more_frequent_bit(inputs):
    ones, zeros = ((inputs == bit).sum(axis=1, keepdims=True) for bit in (1, 0))
    return [ones >= zeros]


ROW = row.Row(
    published=(5, 2, row.REGULAR, 0.5),
    oracle=last_written,
    outcomes=flip_flop_strings,
    floor_rules=more_frequent_bit,
    input_length=lambda length: max(length // 2, 2) * 2 - 1,
    enumerated_lengths=range(1, 9),
    floor_examples=4096,
)
