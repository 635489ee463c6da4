"""Small vocabularies for tests."""

import json


def byte_symbols():
    """Symbols of the 256 bytes, as in the published encoder of GPT-2."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    return [chr(code) for code in (*plain, *range(256, 512 - len(plain)))]


MERGES = (
    *("t h", "th e", "Ġ the", "Ġ Ċ", "Ġ =", "ĠĊ ĠĊ"),
    *("1 2", "12 3", "' s", "Ċ Ċ", "Ġ Ġ"),
)


def write_byte_pairs(folder, first=0, merges=MERGES):
    """Writes `vocab.json` and `merges.txt`; returns the ids of the tokens."""
    folder.mkdir(exist_ok=True)
    tokens = [*byte_symbols(), *(merge.replace(" ", "") for merge in merges)]
    tokens.append("<|endoftext|>")
    ids = {token: first + number for number, token in enumerate(tokens)}
    (folder / "vocab.json").write_text(json.dumps(ids))
    lines = "".join(f"{merge}\n" for merge in ("#version: 0.2", *merges))
    (folder / "merges.txt").write_text(lines)
    return ids
