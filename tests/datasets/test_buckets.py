import itertools

from datasets.buckets import length_buckets


def test_buckets_are_the_cheapest_choice():
    lengths, count = [2, 3, 3, 7, 8, 12, 13, 20], 3

    def cost(buckets):
        return sum(min(b for b in buckets if b >= n) ** 2 for n in lengths)

    choices = itertools.combinations(sorted(set(lengths)), count)
    best = min(cost(choice) for choice in choices if choice[-1] == 20)
    buckets = length_buckets(lengths, count)
    assert len(buckets) == count and cost(buckets) == best
    assert length_buckets([5, 2, 5], 4) == (2, 5)
