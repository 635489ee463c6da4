"""Variable tracking: the variables that have a value, through assignments.

An example of length 11, in which tokens from 17 on are variables, 1 to 16 are
values and 0 is noise. Variable 20 is assigned the value 5, and 31 is assigned
variable 20; 25 is assigned 9, and 18 is assigned 25. The last token asks for
the variables with the value 5, which are 20 and 31:

    inputs   20 5 0 25 9 31 20 18 25 0 5
    targets  3 14
"""

import dataclasses

import tensorflow as tf

from datasets.tasks.base import (
    Task,
    draw_distinct,
    larger,
    place_pairs,
    smaller,
)

CHAINS = 2
VARIABLES = 5
"""Number of variables of a chain: one with a value and four more."""


@dataclasses.dataclass(frozen=True)
class VariableTracking(Task):
    """The variables of one of two chains of assignments, in their order.

    Token 0 is noise, the next ones are values, and the last
    `output_vocabulary_size` ones are variables. An assignment has two tokens: a
    variable and what it is assigned. The first variable of a chain is assigned
    a value, and each other one the variable before it. Variables and values of
    a problem are uniform and distinct. The assignments of a chain keep their
    order; all ways to place and mix those of both chains are equally likely.
    The last token is the value of one chain. Below 21 tokens, chains have fewer
    than 5 variables; the shortest input has 5 tokens. Target ids count from the
    first variable.

    This is the task `vt` of RULER with its 5 variables in a chain, of single
    tokens instead of text. RULER has one chain by default, so that all
    variables that occur are the answer; with a second chain, a model must
    follow the assignments. RULER takes the answers in any order and scores
    recall; its noise repeats a few sentences. It trains nothing and tests
    from 4,096 tokens on.

    Counts of tokens do not tell the chains apart. They show which variables are
    last in a chain, because these occur once and others twice, so the best
    simple rule is a variable that occurs as often as the answer does, with an
    accuracy of 0.2. A rule that reads the order of assignments, and follows
    none, reaches 0.36: the variables that are assigned first, third, fifth,
    eighth and tenth.

    Theory: as for `mqar`, with a lookup for every variable; the next lookup
    needs the result of the one before.

    Reference: Hsieh et al., 2024, section 3. https://arxiv.org/abs/2404.06654
    """

    input_vocabulary_size: int = 33
    output_vocabulary_size: int = 16
    level: str = "regular"
    random_accuracy: float = 1 / 16

    def __post_init__(self):
        variables = self.output_vocabulary_size
        values = self.input_vocabulary_size - 1 - variables
        if min(variables, values) < CHAINS:
            raise ValueError(
                f"{CHAINS} chains need {CHAINS} variables and {CHAINS} values, "
                "but VariableTracking has input_vocabulary_size="
                f"{self.input_vocabulary_size} and output_vocabulary_size="
                f"{variables}: set the second to at least {CHAINS}, and the "
                f"first to at least {CHAINS + 1} more."
            )

    def input_length(self, length):
        """The length, but at least 5."""
        return larger(length, 1 + 2 * CHAINS)

    def output_length(self, length):
        """The variables of a chain, up to five of them."""
        most = min(VARIABLES, self.output_vocabulary_size // CHAINS)
        room = (self.input_length(length) - 1) // (2 * CHAINS)
        return smaller(room, most)

    def draw(self, seed, batch_size, length):
        """Draws two chains, and the places of their assignments."""
        variable_seed, value_seed, place_seed = tf.unstack(
            tf.random.split(seed, 3, alg="philox")
        )
        variables = self.output_vocabulary_size
        values = self.input_vocabulary_size - 1 - variables
        size = self.output_length(length)
        assignments = CHAINS * size
        variable = draw_distinct(
            variable_seed, batch_size, assignments, variables
        )
        variable = tf.reshape(variable, (batch_size, CHAINS, size))
        value = draw_distinct(value_seed, batch_size, CHAINS, values)
        # A value, and the variables that are assigned it one after the other.
        chains = tf.concat(
            [1 + value[:, :, tf.newaxis], 1 + values + variable], axis=2
        )

        # An assignment is one item; so is any other token before the query.
        items = length - 1 - assignments
        order = draw_distinct(place_seed, batch_size, items, items)
        item, is_assignment, is_variable = place_pairs(order, assignments)
        is_first = tf.cast(order < size, tf.int32)
        is_second = tf.cast(order < assignments, tf.int32) - is_first
        step = tf.where(
            order < size,
            tf.cumsum(is_first, axis=1, exclusive=True),
            tf.cumsum(is_second, axis=1, exclusive=True),
        )

        def gather(values, index):
            return tf.gather(values, index, batch_dims=1)

        # The token that an item assigns, in the chains one after the other;
        # the variable that it is assigned to is the next one.
        source = tf.minimum(step, size - 1) + (1 - is_first) * (size + 1)
        chains = tf.reshape(chains, (batch_size, CHAINS * (size + 1)))
        place = gather(source, item) + tf.cast(is_variable, tf.int32)
        listed = tf.where(is_assignment, gather(chains, place), 0)
        return tf.concat([listed, chains[:, :1]], axis=1), variable[:, 0]

    def floor_accuracy(self, length):
        """Accuracy of a variable that occurs as often as the answer does.

        With `n` outputs, the last one is one of 2 variables, which occur once,
        and each other one is one of `2 * (n - 1)`, which occur twice.
        """
        return 1 / max(self.output_length(length), CHAINS)

    def position_only_accuracy(self, length):
        """Accuracy of any constant: variables are uniform."""
        del length
        return 1 / self.output_vocabulary_size
