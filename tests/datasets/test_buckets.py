from datasets.buckets import length_buckets


def test_buckets_are_the_cheapest_choice():
    # These minimize the sum of the squared padded lengths.
    assert length_buckets([2, 3, 3, 7, 8, 12, 13, 20], 3) == (8, 13, 20)
    assert length_buckets([5, 2, 5], 4) == (2, 5)
