"""Words in a group: all products of its first elements.

An example of length 5 in S3, whose elements are the permutations 012, 021, 102,
120, 201 and 210:

    inputs   1 2 3 0 5
    targets  1 4 0 0 5
"""

import dataclasses
import functools
import itertools

import numpy as np
import tensorflow as tf

from datasets.tasks.base import Task, draw_symbols


@dataclasses.dataclass(frozen=True)
class GroupWords(Task):
    """Base of the tasks that track a state: the running product in a group.

    Tokens are the elements of the group, uniform and independent: the
    permutations in lexicographic order, or the even ones; 0 is the identity.
    Output `t` is the product of the inputs up to `t`. A product `p * q` applies
    `q` first, then `p`: it maps i to `p(q(i))`. The published numbering of the
    elements, and the order in a product, may differ, which only renames the
    problems.

    The paper trains a model on words of one length and scores whole words, as
    the metric `exact_match` does. Later papers train on 128 elements and test
    up to 512, such as Selective RoPE (https://arxiv.org/abs/2511.17388) on S3:
    `--train_length=1-128 --test_lengths=128,256,512`. Whether they train on
    all lengths up to 128 is uncertain.

    Every running product is uniform, whatever the products before it, so a
    constant is the best simple rule: a better one has to count elements modulo
    their order.

    Reference: Merrill et al., 2024, section 5. https://arxiv.org/abs/2404.08819
    """

    answers_in_place = True

    def output_length(self, length):
        """One product for each input element."""
        return length

    def permutations(self):
        """Returns the elements, a list of tuples that begins with 0, 1, ..."""
        raise NotImplementedError

    def draw(self, seed, batch_size, length):
        """Draws uniform elements and multiplies them."""
        order = self.input_vocabulary_size
        inputs = draw_symbols(seed, batch_size, length, order)
        table = tf.constant(_make_table(type(self)).ravel(), tf.int32)

        def multiply(reach, products):
            # Entry t has the product of the last `reach` elements up to t. The
            # identity pads, because its id is 0.
            before = tf.pad(products, [[0, 0], [reach, 0]])
            before = before[:, : tf.shape(products)[1]]
            products = tf.ensure_shape(
                tf.gather(table, before * order + products), inputs.shape
            )
            return 2 * reach, products

        _, products = tf.while_loop(
            lambda reach, _: reach < length, multiply, (1, inputs)
        )
        return inputs, products

    def floor_accuracy(self, length):
        """Accuracy of any constant: products are uniform."""
        del length
        return 1 / self.output_vocabulary_size

    def position_only_accuracy(self, length):
        """The same as `floor_accuracy`."""
        return self.floor_accuracy(length)


@dataclasses.dataclass(frozen=True)
class WordsS3(GroupWords):
    """Running products of permutations of three things.

    Theory: the sign of a product is a parity, which is not in C-RASP (Huang et
    al., 2025, https://arxiv.org/abs/2410.02140), so Transformers without a
    scratchpad are not expected to generalise. S3 is solvable: its products are
    in the class TC0, as Transformers are, so some fixed model might compute
    them.
    """

    input_vocabulary_size: int = 6
    output_vocabulary_size: int = 6
    level: str = "regular"
    random_accuracy: float = 1 / 6

    def permutations(self):
        """Returns all six permutations."""
        return list(itertools.permutations(range(3)))


@dataclasses.dataclass(frozen=True)
class WordsA5(GroupWords):
    """Running products of even permutations of five things.

    Theory: A5 is the smallest group that is not solvable, and its products are
    complete for NC1 (Barrington, 1989). Unless TC0 is NC1, no Transformer of
    fixed depth computes them at every length.
    """

    input_vocabulary_size: int = 60
    output_vocabulary_size: int = 60
    level: str = "regular"
    random_accuracy: float = 1 / 60

    def permutations(self):
        """Returns the permutations with an even number of inversions."""
        return [
            permutation
            for permutation in itertools.permutations(range(5))
            if _count_inversions(permutation) % 2 == 0
        ]


@dataclasses.dataclass(frozen=True)
class WordsS5(GroupWords):
    """Running products of permutations of five things.

    Theory: as for A5, which S5 contains.
    """

    input_vocabulary_size: int = 120
    output_vocabulary_size: int = 120
    level: str = "regular"
    random_accuracy: float = 1 / 120

    def permutations(self):
        """Returns all 120 permutations."""
        return list(itertools.permutations(range(5)))


def _count_inversions(permutation):
    """Counts the pairs that are in descending order."""
    return sum(
        first > second
        for first, second in itertools.combinations(permutation, 2)
    )


@functools.cache
def _make_table(task):
    """Makes the multiplication table of a task's group, int `(G, G)`."""
    elements = np.array(task().permutations())
    ids = {tuple(element): number for number, element in enumerate(elements)}
    # Product [p, q] maps i to p(q(i)).
    products = elements[:, elements]
    return np.array(
        [[ids[tuple(product)] for product in row] for row in products]
    )
