"""Training and evaluation examples, split by length."""

import functools

import numpy as np

from datasets.labelled.rows import LabelledError
from datasets.labelled.tokens import Tokenizer, Vocabulary

HELD_OUT = 10
"""One of so many inputs of trained lengths is not trained on. A hash of the
input chooses them, so that equal inputs are on the same side."""

TRAINED_BINS, TESTED_BINS = 4, 6
"""Most bins of lengths that are chosen for training, and beyond it."""

LONGEST_TESTED = 8
"""How many times the longest trained length is tested at most, unless lengths
are given."""

_CHUNK = 2**16
"""Number of examples whose tokens are counted at once."""


def choose_lengths(training, testing=None, longest=None):
    """Chooses trained and tested lengths.

    Args:
        training: `Store` of the training examples.
        testing: `Store` of other examples to test on, or `None`.
        longest: int. The longest trained length; `None`: the median of the
            training examples or, with others to test on, the longest.

    Returns:
        Two tuples of increasing ints, the upper ends of bins with about
        equally many examples.
    """
    lengths = training.examples["length"]
    if longest is None:
        share = 0.5 if testing is None else 1.0
        longest = int(np.quantile(lengths, share, method="inverted_cdf"))
    others = lengths if testing is None else testing.examples["length"]
    is_tested = (others > longest) & (others <= LONGEST_TESTED * longest)
    return (
        _choose_ends(lengths[lengths <= longest], TRAINED_BINS),
        _choose_ends(others[is_tested], TESTED_BINS),
    )


def _choose_ends(lengths, count):
    if not len(lengths):
        return ()
    shares = np.arange(1, count + 1) / count
    ends = np.quantile(lengths, shares, method="inverted_cdf")
    return tuple(np.unique(ends).astype(int).tolist())


class LabelledData:
    """Examples of which some are trained on, and others evaluated.

    An evaluated length stands for a bin: the examples that are at most as long,
    and longer than the evaluated length before it. Training has the examples
    up to the longest trained length, without those held out. Evaluated are
    those held out and the longer ones or, with other examples to test on,
    those held out and the others.

    Args:
        training: `Store` of training examples.
        testing: `Store` of other examples to test on; `None`: there are none.
        trained: Increasing ints. The trained lengths.
        evaluated: Increasing ints. The evaluated lengths, trained ones
            included.
        vocabulary_size: int. Largest number of pieces of the vocabulary, the
            most frequent ones of training.

    Attributes:
        kind: str, of `KINDS`.
        training: int64 array. Numbers of the training examples.
        evaluated: Dict from evaluated lengths to int64 arrays, the numbers of
            their examples, in a fixed random order; without empty bins.
        classes: Tuple of str. Labels or tags by id, empty for answers. Those
            of training come first.
        new_classes: Tuple of str. Labels or tags that training does not have.
        vocabulary: `Vocabulary`.

    Raises:
        LabelledError: If there are no examples to train on, or to evaluate.
    """

    def __init__(
        self, training, testing, *, trained, evaluated, vocabulary_size
    ):
        self.stores = [training, *([testing] if testing else [])]
        self.kind = training.kind
        self._second = len(training.examples)
        self._lengths = self._join("length")
        self._hashes = self._join("hash")
        is_first = np.arange(len(self._lengths)) < self._second
        is_short = is_first & (self._lengths <= max(trained))
        is_held_out = is_short & (self._hashes % HELD_OUT == 0)
        is_trained = is_short & ~is_held_out
        self.training = np.flatnonzero(is_trained)
        if not len(self.training):
            raise LabelledError(
                f"no example is at most {max(trained)} long: the shortest has "
                f"length {self._lengths.min()}. Raise --train_length."
            )
        is_tested = ~is_first if testing else ~is_short
        self.evaluated = self._sort(is_held_out | is_tested, evaluated)
        if not self.evaluated:
            raise LabelledError(
                f"no example of the lengths up to {max(evaluated)} is left to "
                "evaluate: give more examples, or others by --test_data."
            )
        used = len(self.training) + sum(map(len, self.evaluated.values()))
        self.unused = len(self._lengths) - used
        trained_of_first = is_trained[: self._second]
        self._make_vocabulary(trained_of_first, vocabulary_size)
        self._make_classes(trained_of_first)

    def _join(self, field):
        return np.concatenate([store.examples[field] for store in self.stores])

    def _sort(self, is_evaluated, ends):
        """Returns the numbers of the evaluated examples of each bin."""
        numbers = np.flatnonzero(is_evaluated)
        # The remainder has chosen the examples held out.
        order = np.argsort(self._hashes[numbers] // HELD_OUT, kind="stable")
        numbers = numbers[order]
        bins = np.searchsorted(ends, self._lengths[numbers])
        found = [numbers[bins == number] for number in range(len(ends))]
        return {
            end: chosen
            for end, chosen in zip(ends, found, strict=True)
            if len(chosen)
        }

    def _make_vocabulary(self, is_trained, size):
        store = self.stores[0]
        counts = count(store, "", is_trained, len(store.pieces))
        if self.kind == "answer":
            counts += count(store, "target_", is_trained, len(store.pieces))
        tokenizer = Tokenizer(store.tokenizer, store.pieces)
        kept = range(len(store.pieces))
        if tokenizer.is_growing:
            frequent = np.argsort(-counts, kind="stable")[:size]
            kept = np.sort(frequent[counts[frequent] > 0])
        pieces = [store.pieces[number] for number in kept]
        self.vocabulary = Vocabulary(tokenizer, pieces)
        self._pieces = [
            self.vocabulary.map_pieces(store.pieces) for store in self.stores
        ]

    def _make_classes(self, is_trained):
        if self.kind == "answer":
            self.classes, self.new_classes = (), ()
            return
        store = self.stores[0]
        counts = count(store, "target_", is_trained, len(store.classes))
        known = [store.classes[n] for n in np.flatnonzero(counts)]
        every = [name for store in self.stores for name in store.classes]
        self.classes = tuple(dict.fromkeys([*known, *every]))
        self.new_classes = self.classes[len(known) :]
        ids = {name: number for number, name in enumerate(self.classes)}
        self._classes = [
            np.array([ids[name] for name in store.classes], np.int32)
            for store in self.stores
        ]

    def read(self, number):
        """Returns the ids of the input and the target of an example.

        Args:
            number: int. Number of the example.

        Returns:
            Two int32 arrays: the tokens of the input; and those of the answer,
            its label, or its tags.
        """
        place = int(number >= self._second)
        store, index = self.stores[place], number - place * self._second
        pieces = self._pieces[place]
        maps = pieces if self.kind == "answer" else self._classes[place]
        return (
            _look_up(pieces, store.input(index)),
            _look_up(maps, store.target(index)),
        )

    def length(self, number):
        """Returns the length of an example, an int."""
        return int(self._lengths[number])

    def count_tokens(self, length):
        """Returns the most tokens of examples that are at most so long.

        Args:
            length: int. The length.

        Returns:
            Two ints: the most tokens of an input, and of an answer; 0 for
            other kinds.
        """
        short = self._lengths <= length
        inputs, answers = (
            int(sizes[short].max(initial=1)) for sizes in self._sizes
        )
        return inputs, answers if self.kind == "answer" else 0

    @functools.cached_property
    def _sizes(self):
        return self._join("tokens"), self._join("target_tokens")

    @property
    def digest(self):
        """A digest of all examples, a str."""
        return "sha256:" + "-".join(store.digest for store in self.stores)

    def describe(self):
        """Returns what there is, a dict that JSON files can have."""
        store = self.stores[0]
        return {
            "kind": self.kind,
            "tokens": store.tokenizer,
            "columns": store.columns,
            "vocabulary": self.vocabulary.size,
            "classes": len(self.classes),
            "training_examples": len(self.training),
            "evaluated_examples": {
                str(length): len(numbers)
                for length, numbers in self.evaluated.items()
            },
            "unused_examples": self.unused,
            "skipped_lines": [store.skipped for store in self.stores],
        }

    def summarize(self):
        """Returns lines that say what the examples are."""
        store = self.stores[0]
        names = store.columns
        length = names["length"] or "number of tokens"
        classes = f", {len(self.classes):,} classes" if self.classes else ""
        evaluated = np.concatenate([*self.evaluated.values()])
        return [
            f"examples: {names['input']} -> {names['target']} ({self.kind}"
            f"{classes}); tokens: {store.tokenizer}, {self.vocabulary.size:,} "
            f"of them; length: {length}",
            f"{len(self.training):,} training examples up to length "
            f"{self._lengths[self.training].max():,}; {len(evaluated):,} other "
            "examples to evaluate, up to length "
            f"{self._lengths[evaluated].max():,}",
        ]

    def describe_problems(self):
        """Returns sentences on what a reader of the results must know."""
        found = []
        for store in self.stores:
            if store.skipped:
                found.append(
                    f"{store.skipped:,} bad lines were skipped, the first is "
                    f"{store.first_bad}."
                )
        if self.unused:
            found.append(
                f"{self.unused:,} examples are longer than all lengths."
            )
        if self.new_classes:
            named = ", ".join(map(repr, self.new_classes[:5]))
            found.append(
                f"{len(self.new_classes):,} of {len(self.classes):,} classes "
                f"are in no training example: {named}."
            )
        seen = {
            length: self.seen_share(length, None) for length in self.evaluated
        }
        shown = [f"{share:.0%} of {n}" for n, share in seen.items() if share]
        if shown:
            found.append(
                "Training has inputs that are also evaluated: of length "
                f"{', '.join(shown)}."
            )
        return found

    @functools.cached_property
    def _trained_hashes(self):
        return np.unique(self._hashes[self.training])

    def seen_share(self, length, most):
        """Returns the share of evaluated inputs that training has, too.

        Args:
            length: int. An evaluated length.
            most: int. Number of its first examples to look at.
        """
        hashes = self._hashes[self.evaluated[length][:most]]
        return float(np.isin(hashes, self._trained_hashes).mean())


def count(store, role, chosen, size):
    """Counts the pieces or classes of some examples.

    Args:
        store: `Store`.
        role: `""` for inputs, `"target_"` for targets.
        chosen: bool array `(examples,)`. The examples.
        size: int. Number of pieces or classes.

    Returns:
        int64 array `(size,)`.
    """
    values = store.targets if role else store.tokens
    sizes = store.examples[f"{role}tokens"]
    found = np.zeros(size, np.int64)
    start = 0
    for first in range(0, len(sizes), _CHUNK):
        part = slice(first, first + _CHUNK)
        stop = start + int(sizes[part].sum())
        is_chosen = np.repeat(chosen[part], sizes[part])
        found += np.bincount(values[start:stop][is_chosen], minlength=size)[
            :size
        ]
        start = stop
    return found


def _look_up(ids, numbers):
    # The last entry is that of pieces without a number.
    return ids[np.minimum(numbers, len(ids) - 1)]
