"""The interface between a run and its data."""

import abc
import dataclasses
import hashlib

from keras_lengen.evaluation import wilson_interval

DATA_DIGEST = "sha256:"
"""Beginning of a digest of all data. Runs of earlier versions have digests of
samples, without it."""


@dataclasses.dataclass(frozen=True)
class Metric:
    """A number that an evaluation measures at each length.

    Attributes:
        name: str. Its name, as in `{name}_by_length` of `results.json`.
        unit: str. Its unit, for axes and tables; empty for a fraction between
            0 and 1.
        higher_is_better: bool. Whether higher values are better.
        second_unit: Pair of another unit, a str, and of how many of it are one
            `unit`, a float; `None`: values have one unit.
    """

    name: str
    unit: str = ""
    higher_is_better: bool = True
    second_unit: tuple[str, float] | None = None

    @property
    def is_share(self):
        """Whether values lie between 0 and 1."""
        return not self.unit


def average_unseen(by_length, longest_trained):
    """Returns the mean over lengths above the trained ones.

    Args:
        by_length: `{length: value}`; lengths may be decimal strings.
        longest_trained: int. The longest trained length. If no length is
            above it, the mean is over all lengths.
    """
    unseen = [
        value
        for length, value in by_length.items()
        if int(length) > longest_trained
    ]
    values = unseen or list(by_length.values())
    return sum(values) / len(values)


class Problem(abc.ABC):
    """Training batches, evaluation batches, loss and metrics of a run.

    A batch is a dict of tensors: `(B, ...)`, or scalars that all examples
    share. A length counts what the data are made of, such as symbols of the
    input; the model may read more tokens than that.

    Args:
        config: Configuration of the run, with `evaluated_lengths`,
            `trained_lengths`, `evaluation_examples` and `total_length`.

    Attributes:
        title: str. The task or data set, in a word or two; also names a
            directory.
        metrics: Tuple of `Metric`s that an evaluation measures. The score of
            a run is the first one's mean over lengths above
            `longest_trained`.
        lengths: Tuple of int. Lengths to evaluate, increasing.
        trained_lengths: Tuple of int. The trained lengths, increasing.
        longest_trained: int. The longest trained length.
        floor_labels: Dict from the names of trivial predictors to
            descriptions of them.
        length_name: str. What a length is, for plots and tables.
        examples_sum: int. Index in `sums` of the number of examples, if the
            first metric is a mean of shares of these, whose 95% interval is
            then measured; `None`: it is not.
        kinds: Tuple of str. Kinds of examples that evaluations count apart:
            the first metric of each is `{metric}_{kind}`; empty: one kind.
        note: str. What a reader of the results must know; empty: nothing.
        unmeasured: str. What `measure_model` would measure in addition, for a
            note where a run cannot; empty: nothing.
        data_digest: str, known after `prepare`. Differs where a run would
            read other data; empty: all data are computed.
        data: Dict, known after `prepare`: what results say of the data.
    """

    title: str
    metrics: tuple
    floor_labels: dict = {}
    length_name: str = "length"
    examples_sum: int | None = None
    kinds: tuple = ()
    note: str = ""
    unmeasured: str = ""
    data_digest: str = ""
    data: dict = {}

    def __init__(self, config):
        self.config = config
        self.lengths = config.evaluated_lengths
        self.trained_lengths = config.trained_lengths
        self.longest_trained = max(self.trained_lengths)

    def prepare(self):  # noqa: B027, there may be nothing to open.
        """Opens the data, before work starts.

        Raises:
            ConfigError: If they are not there.
        """

    def keep_digest(self, parts):
        """Sets `data_digest` from the `digest`s of the parts of the data."""
        content = b"".join(part.digest for part in parts)
        digest = hashlib.sha256(content).hexdigest()[:16]
        self.data_digest = f"{DATA_DIGEST}{digest}"

    @abc.abstractmethod
    def training_batches(
        self, *, padded_length, first_step, last_step, context
    ):
        """Returns the batches of steps `first_step` to `last_step - 1`.

        Args:
            padded_length: int. Number of tokens that examples are padded to.
            first_step: int. Number of the first step, from 0.
            last_step: int. Number of the step to end before.
            context: `tf.distribute.InputContext` of the process.

        Returns:
            A `tf.data.Dataset` of batches: for each step, one for every
            replica of the process.
        """

    @abc.abstractmethod
    def tokens_at(self, step):
        """Returns the number of tokens of a step's examples.

        Args:
            step: Number of the step, a scalar int64 tensor.

        Returns:
            A scalar int32 tensor.
        """

    def describe_length(self, length):
        """Returns the name of a length, an int, which another run may have."""
        return str(length)

    def tokens(self, length):
        """Returns the number of tokens of a sequence of a length, an int."""
        return self.config.total_length(length)

    def names(self):
        """Returns a dict with the names of ids, for exported models.

        For example, `"tokens"` are the texts of the token ids, and `"classes"`
        the labels of the outputs, tuples of str.
        """
        return {}

    def inputs(self, batch):
        """Returns the inputs of the model, some tensors of a batch."""
        return {name: batch[name] for name in ("token_ids", "lengths")}

    def cut(self, batch, padded_length):
        """Returns a batch that is cut to a smaller padded length.

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
            outputs: Outputs of the model for `inputs(batch)`.
            batch: The batch.

        Returns:
            Two float32 scalars.
        """

    def evaluation_examples(self, length):
        """Returns the number of examples to evaluate at a length."""
        return self.config.evaluation_examples

    @abc.abstractmethod
    def evaluation_batch(self, *, index, batch_size, length, padded_length):
        """Returns one padded evaluation batch of a length.

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
            outputs: Outputs of the model for `inputs(batch)`.
            batch: An evaluation batch, with `"used"`, bool `(B,)`: whether an
                example counts. Others fill up the last batch.

        Returns:
            A float32 tensor of any shape; `measure` expects `(2 * metrics,)`,
            a sum and a number for each metric.
        """

    def measure(self, sums):
        """Returns `{metric: value}`: each sum over its number.

        `{metric}_low` and `{metric}_high` of the first one are the 95%
        interval of so many trials as there are examples: at most too wide for
        shares of examples that have several outputs.

        Args:
            sums: NumPy array, the results of `sums` added over all batches of
                a length.
        """
        values = sums.tolist()
        pairs = zip(values[::2], values[1::2], strict=False)
        found = {
            metric.name: total / count
            for metric, (total, count) in zip(self.metrics, pairs, strict=False)
        }
        if self.examples_sum is None:
            return found
        first = self.metrics[0].name
        low, high = wilson_interval(found[first], values[self.examples_sum])
        # Before the metrics: the last of these ends the record.
        return {f"{first}_low": low, f"{first}_high": high, **found}

    def measure_positions(self, sums):
        """Returns the first metric at the positions of a sequence.

        Args:
            sums: As for `measure`.

        Returns:
            `{position: value}`, increasing, from the first of some positions
            to their mean; empty: not measured.
        """
        return {}

    def measure_model(self, model, progress):
        """Measures what takes more than one call of the trained model.

        Args:
            model: Built Keras model, on a single device.
            progress: Called with a length, and which fraction of its examples
                are done.

        Returns:
            Dict for `results.json`; `{}`: nothing.
        """
        return {}

    def lay_out(self, values, length):
        """Arranges a number for each token as pictures.

        Args:
            values: Array `(B, T)`, such as token ids or attention weights.
            length: int. Length of the sequences.

        Returns:
            NumPy array `(B, rows, columns)`; `None`: sequences are no
            pictures.
        """
        return None

    def floors(self):
        """Returns the first metric of trivial predictors.

        Returns:
            `{name: {length: value}}`, with the names of `floor_labels`.
        """
        return {}
