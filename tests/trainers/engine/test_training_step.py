from trainers.engine.training_step import find_bucket


def test_bucket_of_a_length():
    found = [int(find_bucket(n, (4, 8, 12))) for n in (1, 4, 5, 8, 12)]
    assert found == [0, 0, 1, 1, 2]
