import pytest

from docs import build_scaling
from trainers.tpu.compiler import Topology

ROW = {
    "topology": "v5e:2x2",
    "flops": 197e12,
    "bytes": 819e9 / 4,
    "trained_parameters": 0,
    "all_reduce_bytes": 100e9,
}
FOUR = Topology("v5e:2x2")


def test_the_page_is_up_to_date():
    assert build_scaling.PAGE.read_text() == build_scaling.make_page()


def test_efficiency():
    # A batch that grows with the chips: one second of products, then 75 GB sent
    # twice at 100 GB per second.
    weak = build_scaling.estimate_weak_efficiency(ROW, FOUR)
    # A batch that the chips share: four seconds on one chip; on each of four,
    # one second and the sum.
    strong = build_scaling.estimate_strong_efficiency(ROW, FOUR)
    assert [weak, strong] == pytest.approx([1 / 2.5] * 2, rel=1e-4)
    # The update moves its bytes on any number of chips, half a second here.
    row = {
        **ROW,
        "flops": 0,
        "trained_parameters": 819e9 / 56,
        "bytes": 819e9,
        "all_reduce_bytes": 0,
    }
    strong = build_scaling.estimate_strong_efficiency(row, FOUR)
    assert strong == pytest.approx(2.5 / (4 * 1))
