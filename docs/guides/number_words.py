"""Numbers in words with their digits, as examples of `trainers.examples`."""

import random

WORDS = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen "
    "twenty thirty forty fifty sixty seventy eighty ninety"
)
SMALL, TENS = WORDS.split()[:20], WORDS.split()[20:]
SCALES = {10**9: "billion", 10**6: "million", 10**3: "thousand", 100: "hundred"}


def spell(number):
    """Returns a number below 10**12 in words.

    >>> spell(2_300_045)
    'two million three hundred thousand forty five'
    """
    for scale, name in SCALES.items():
        if number >= scale:
            head, rest = divmod(number, scale)
            tail = f" {spell(rest)}" if rest else ""
            return f"{spell(head)} {name}{tail}"
    if number < 20:
        return SMALL[number]
    tens, ones = divmod(number, 10)
    return f"{TENS[tens - 2]} {SMALL[ones]}" if ones else TENS[tens - 2]


def read():
    """Yields examples: the words of a number, and its digits."""
    rng = random.Random(0)
    for _ in range(20_000):
        number = rng.randrange(10 ** rng.randint(1, 9))
        yield {"words": spell(number), "digits": [*str(number)]}
