"""Solvers that read a prompt and write its answer, by other ways."""

import collections
import functools
import re


def solve(task, prompt):
    """Returns the answer to a prompt of the published code, with one space."""
    return SOLVERS[task](" ".join(prompt.split()))


def _number(text):
    return int(text.replace(" ", ""))


def _digits(number):
    return ("- " if number < 0 else "") + " ".join(str(abs(number)))


def _addition(prompt):
    first, second = re.fullmatch(r"Compute (.+) \+ (.+) \?", prompt).groups()
    return f"The answer is {_digits(_number(first) + _number(second))}."


def _polynomial(prompt):
    point, terms = re.fullmatch(
        r"Evaluate at x = (.+?) in (.+) \?", prompt
    ).groups()
    formula = terms.replace("- ", "-").replace("x", f"({_number(point)})")
    value = eval(formula, {"__builtins__": {}})
    return f"The answer is {_digits(value % 10)}."


def _sort(prompt, key):
    (items,) = re.fullmatch(
        r"Sort the following list \[ (.+) \]\.", prompt
    ).groups()
    counts = collections.Counter(items.split(", "))
    order = [
        item for item in sorted(counts, key=key) for _ in range(counts[item])
    ]
    return f"The sorted list is [ {', '.join(order)} ]."


def _summation(prompt):
    digits = re.fullmatch(r"Compute: (.+) \.\[SEP\]", prompt)[1].split(" + ")
    total = 0
    for digit in map(int, digits):
        total = (total + digit) % 10
    return f"The answer is {total} ."


def _parity(prompt):
    (bits,) = re.fullmatch(
        r"Is the number of 1's even in the sequence \[ (.+) \] \?", prompt
    ).groups()
    even = bits.count("1") in range(0, 1000, 2)
    return f"The answer is {'Yes' if even else 'No'}."


def _lego(prompt):
    clauses, query = re.fullmatch(
        r"If (.+)\. Then, what is the value of (.)\?", prompt
    ).groups()
    known, clauses = {"1": 1}, clauses.split(", ")
    while query not in known:
        for name, sign, other in re.findall(
            r"(.) = ([+-]) ?(.)", ", ".join(clauses)
        ):
            if other in known:
                known[name] = known[other] * (1 if sign == "+" else -1)
    return f"The answer is {'+1' if known[query] == 1 else '-1'}."


def _words(prompt, verb):
    return re.fullmatch(rf"{verb}: (.+) \[SEP\]", prompt)[1].split()


def _copy(prompt, times=1, between=()):
    words = _words(prompt, "Copy")
    return " ".join([*words, *between, *(words * (times - 1))])


def _replace(prompt):
    first, second, words = re.fullmatch(
        r"Replace (\w+) with (\w+) in (.+) \[SEP\]", prompt
    ).groups()
    assert first != second
    return re.sub(rf"\b{first}\b", second, words)


def _reverse(prompt):
    words = _words(prompt, "Reverse")
    return " ".join(words.pop() for _ in range(len(words)))


def _scan(prompt):
    def run(command):
        for joint in (" after ", " and "):
            if joint in command:
                first, second = map(run, command.split(joint))
                return second + first if "after" in joint else first + second
        for word, times in (("twice", 2), ("thrice", 3)):
            if command.endswith(word):
                return run(command.removesuffix(word).strip()) * times
        verb, *manner = command.split()
        action = [] if verb == "turn" else [verb.capitalize()]
        turn = [manner[-1].capitalize()] if manner else []
        if "around" in manner:
            return (turn + action) * 4
        return turn * (1 + ("opposite" in manner)) + action

    return " ".join(run(re.fullmatch(r"Solve: (.+)\[SEP\]", prompt)[1]))


def _aligned(prompt):
    """Returns the words between the first one and the equals sign."""
    return re.fullmatch(r"\$ (.+) =", prompt)[1]


def _column_addition(prompt, order=-1):
    """Adds digit by digit, and keeps the last carry, zero or not."""
    first, second = (text.split() for text in _aligned(prompt).split(" + "))
    answer, carry = [], 0
    for pair in zip(first[::order], second[::order], strict=True):
        carry, digit = divmod(sum(map(int, pair)) + carry, 10)
        answer.append(str(digit))
    return " ".join([*answer, str(carry)])


def _column_multiplication(prompt):
    first, second = (text.split() for text in _aligned(prompt).split(" * "))
    factor, answer, carry = int("".join(second)), [], 0
    for digit in reversed(first):
        carry, rest = divmod(int(digit) * factor + carry, 10)
        answer.append(str(rest))
    return " ".join([*answer, str(carry % 10), str(carry // 10)])


def _running_parity(prompt):
    bits = _aligned(prompt).split()
    counts = [bits[: end + 1].count("1") for end in range(len(bits))]
    return " ".join("01"[count % 2] for count in counts)


def _hinted_addition(prompt):
    first, second = (
        dict(re.findall(r"(h\d+) (\d)", text))
        for text in _aligned(prompt).split(" + ")
    )
    total = 0
    hints = list(max(first, second, key=len))
    for place, hint in enumerate(hints):
        pair = int(first.get(hint, 0)) + int(second.get(hint, 0))
        total += pair * 10**place
    start = int(hints[0][1:])
    return " ".join(
        f"h{start + place} {digit}"
        for place, digit in enumerate(reversed(str(total)))
    )


SOLVERS = {
    "addition": _addition,
    "polynomial": _polynomial,
    "sort": lambda prompt: _sort(prompt, lambda item: int(item[1:])),
    "sort_multi_digit": lambda prompt: _sort(prompt, _number),
    "summation": _summation,
    "parity": _parity,
    "lego": _lego,
    "copy": _copy,
    "copy_twice": lambda prompt: _copy(prompt, 2, ["[NEXT]"]),
    "copy_repeated": _copy,
    "copy_repeated_twice": lambda prompt: _copy(prompt, 2),
    "copy_replace": _replace,
    "reverse": _reverse,
    "reverse_twice": lambda prompt: (
        f"{_reverse(prompt)} [NEXT] {_reverse(prompt)}"
    ),
    "reverse_and_back": lambda prompt: (
        f"{_reverse(prompt)} [NEXT] {' '.join(_words(prompt, 'Reverse'))}"
    ),
    "scan": _scan,
    "aligned_addition": _column_addition,
    "aligned_multiplication": _column_multiplication,
    "aligned_copy": _aligned,
    "aligned_reverse": lambda prompt: _aligned(prompt)[::-1],
    "aligned_parity": _running_parity,
    "marked_addition": lambda prompt: _column_addition(
        prompt.replace("^ ", "")
    ),
    "reversed_addition": functools.partial(_column_addition, order=1),
    "hinted_addition": _hinted_addition,
}
