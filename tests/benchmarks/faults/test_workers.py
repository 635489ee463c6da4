import json

from benchmarks.faults.workers import make_environments


def test_environments_differ_only_in_the_index():
    configs = [
        json.loads(environment["TF_CONFIG"])
        for environment in make_environments(2)
    ]
    first, second = (config["cluster"]["worker"] for config in configs)
    assert first == second
    assert len(set(first)) == 2
    assert [config["task"]["index"] for config in configs] == [0, 1]
