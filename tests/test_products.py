import pytest

from tests.products import mark_slow, product


def marks(cases):
    return [[mark.name for mark in case.marks] for case in cases]


def test_cases_that_are_not_kept_are_marked_beside_their_own_marks():
    slow = pytest.param("c", id="see", marks=pytest.mark.slow)
    cases = product(["a", "b", slow], keep=["b"])
    assert [case.values for case in cases] == [("a",), ("b",), ("c",)]
    assert marks(cases) == [["product"], [], ["slow", "product"]]
    assert [case.id for case in cases] == [None, None, "see"]


def test_a_function_of_the_values_says_what_is_kept():
    cases = product(
        [("a", 1), ("b", 1), ("b", 2)], lambda x, n: x < "b" or n > 1
    )
    assert marks(cases) == [[], ["product"], []]


def test_cases_with_a_name_are_slow():
    cases = mark_slow([("a", None), ("b", 1), ("c", "b")], {"b"})
    assert [case.values for case in cases] == [
        ("a", None),
        ("b", 1),
        ("c", "b"),
    ]
    assert marks(cases) == [[], ["slow"], ["slow"]]
    assert marks(product(cases, keep=[("b", 1)])) == [
        ["product"],
        ["slow"],
        ["slow", "product"],
    ]


def test_a_kept_case_must_be_one():
    with pytest.raises(ValueError, match=r"'c'.* is not a case"):
        product(["a", "b"], keep=["c"])
