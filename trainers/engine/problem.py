"""What a run needs to know of its data, whatever the data are."""

import abc
import dataclasses


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number that an evaluation measures at each length.

    Attributes:
        name: Its name, as in `{name}_by_length` of results.
        unit: What it is measured in, for axes and tables; empty for a share
            between 0 and 1.
        higher_is_better: Whether more of it is better.
    """

    name: str
    unit: str = ""
    higher_is_better: bool = True

    @property
    def is_share(self):
        """Whether values lie between 0 and 1."""
        return not self.unit


class Problem(abc.ABC):
    """Batches to train and to evaluate on, and what they are judged by.

    A batch is a dict of tensors, examples first, scalars for what all examples
    share. A length is what lengths are counted in, such as characters of the
    input; tokens are what the model reads.

    Args:
        config: Configuration of the run, with `evaluated_lengths`,
            `trained_lengths`, `evaluation_examples` and `total_length`.

    Attributes:
        title: What is learned, in a word or two; a name for a directory, too.
        metrics: The `Metric`s of an evaluation. The first makes the score: its
            mean over the lengths above `longest_trained`.
        lengths: Lengths to evaluate, increasing.
        longest_trained: The longest trained length.
        floor_labels: What the trivial predictors are, by name.
    """

    title: str
    metrics: tuple
    floor_labels: dict = {}

    def __init__(self, config):
        self.config = config
        self.lengths = config.evaluated_lengths
        self.longest_trained = max(config.trained_lengths)

    @abc.abstractmethod
    def training_batches(
        self, *, padded_length, first_step, last_step, context
    ):
        """Returns the batches of steps `first_step` to `last_step - 1`.

        Args:
            padded_length: Number of tokens that examples are padded to.
            first_step: Number of the first step, from 0.
            last_step: Number of the step to end before.
            context: `tf.distribute.InputContext` of the process.

        Returns:
            A `tf.data.Dataset` of batches, for each step one for every replica
            of the process.
        """

    @abc.abstractmethod
    def tokens_at(self, step):
        """Returns how many tokens a model reads of the batch of a step.

        Args:
            step: Number of the step, a scalar int64 tensor.

        Returns:
            A scalar int32 tensor.
        """

    def tokens(self, length):
        """Returns how many tokens a model reads of a sequence of a length."""
        return self.config.total_length(length)

    def inputs(self, batch):
        """Returns what a model reads of a batch."""
        return {name: batch[name] for name in ("token_ids", "lengths")}

    def cut(self, batch, padded_length):
        """Returns a batch with its padded length reduced.

        Args:
            batch: The batch.
            padded_length: Number of tokens, an int or a scalar tensor.
        """
        return {
            name: values[:, :padded_length]
            if len(values.shape) == 2
            else values
            for name, values in batch.items()
        }

    @abc.abstractmethod
    def loss(self, outputs, batch):
        """Returns the sum of the losses of a batch, and their number.

        Args:
            outputs: What the model returns for `inputs(batch)`.
            batch: The batch.

        Returns:
            Two float32 scalars.
        """

    def evaluation_examples(self, length):
        """Returns the number of examples to evaluate at a length."""
        return self.config.evaluation_examples

    @abc.abstractmethod
    def evaluation_batch(self, *, index, batch_size, length, padded_length):
        """Returns batch number `index` of a length, padded.

        Args:
            index: Number of the batch, a scalar int32 tensor.
            batch_size: Number of examples, an int or a scalar tensor.
            length: The length, a scalar int32 tensor.
            padded_length: Number of tokens, an int or a scalar tensor.
        """

    @abc.abstractmethod
    def sums(self, outputs, batch):
        """Returns the sums over a batch that metrics are made of.

        Args:
            outputs: What the model returns for `inputs(batch)`.
            batch: An evaluation batch, with `"used"`, bool `(B,)`: examples
                that count.

        Returns:
            A float32 tensor, for `measure` a sum and a number for each metric.
        """

    def measure(self, sums):
        """Returns `{metric: value}`: each sum over its number.

        Args:
            sums: NumPy array of the sums over all batches of a length.
        """
        sums = iter(sums.tolist())
        return {metric.name: next(sums) / next(sums) for metric in self.metrics}

    def floors(self):
        """Returns `{name: {length: value}}` of what trivial predictors reach.

        Names are those of `floor_labels`, values those of the first metric.
        """
        return {}
