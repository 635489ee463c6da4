from keras_lengen import layers
from keras_lengen.evaluation.plot import COLORS
from trainers.records import styles
from trainers.records.styles import choose_floor_styles, choose_styles

DASHED = (6, 3)


def test_encodings_with_a_randomized_form_are_dashed():
    names = layers.ENCODINGS.keys()
    found = {n for n in names if f"{styles.RANDOMIZED}{n}" in names}
    assert found == set(styles.PLAIN)
    assert set(COLORS) == set(styles.COLORS)


def test_color_and_dash_follow_from_the_name():
    for name, color, dash in (
        ("RoPE", styles.RED, DASHED),
        ("RandomizedRoPE", styles.RED, ()),
        ("RandomizedRoPE(max_position=64), steps=7", styles.RED, ()),
        ("RoPE, steps=7", styles.RED, DASHED),
        ("RoPE, randomized", styles.RED, ()),
        ("LearnedEncoding, plain", styles.SKY, DASHED),
        ("NoPE", styles.SKY, ()),
        ("coupled near keys", styles.PINK, ()),
        ("randomized axial RoPE", styles.PINK, ()),
    ):
        for names in ([name], ["DAPE", "RandomizedALiBi", name]):
            style = choose_styles(names)[name]
            assert (style.color, style.dash) == (color, dash), name


def test_curves_of_one_color_and_floors_are_told_apart():
    names = ["RoPE", "ALiBi", "RandomizedRoPE", "YaRN", "own", "own, steps=7"]
    found = choose_styles(names)
    assert len({(s.color, s.marker) for s in found.values()}) == len(names)
    assert found["own"].color == found["own, steps=7"].color
    floors = choose_floor_styles(["a", "b"])
    dashes = [s.dash for s in floors.values()]
    assert len({*dashes, DASHED, ()}) == 4
    assert {s.color for s in floors.values()}.isdisjoint(styles.COLORS)
