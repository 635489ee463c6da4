"""Accuracy and loss of a model at every length, with few programs."""

import tensorflow as tf
from keras import ops

from datasets.pipeline import evaluation_batch, length_buckets
from trainers.loop import inputs_of, on_tpu, set_seeds

PROGRAMS = 10
"""Most padded lengths that an evaluation computes."""

PAIRS = 2**24
"""Most pairs of tokens of a batch, so that attention fits in memory."""

METRICS = ("accuracy", "exact_match", "loss")


class LengthEvaluation:
    """Measures a model at each of several lengths.

    Args:
        model: Built Keras model.
        task: The `Task` to solve.
        lengths: Lengths to evaluate.
        strategy: The `tf.distribute` strategy.
        examples: Fresh examples of each length.
        seed: Seed of the examples and of what the model draws.
        compiled: Whether XLA compiles the forward pass.
        programs: Most padded lengths to compute.
    """

    def __init__(
        self,
        model,
        task,
        lengths,
        strategy,
        *,
        examples,
        seed,
        compiled,
        programs=PROGRAMS,
    ):
        self.model = model
        self.task = task
        self.lengths = lengths
        self.strategy = strategy
        self.examples = examples
        self.seed = seed
        self.buckets = length_buckets(
            [task.total_length(length) for length in lengths], programs
        )
        self._compile(compiled)

    def _compile(self, compiled):
        # Compiled, every padded length is a program; otherwise one is enough.
        self._number = int if compiled else tf.constant
        self._draw = tf.function(self._draw_batch)
        self._run = tf.function(self._run_batch, reduce_retracing=not compiled)
        self._forward = tf.function(
            self.measure_batch,
            jit_compile=compiled and not on_tpu(self.strategy),
        )

    def __call__(self, progress=lambda length: None):
        """Measures every length.

        Args:
            progress: Called with each length that is done.

        Returns:
            `{metric: {length: value}}` with the share of right outputs
            `accuracy`, the share of examples without a wrong one
            `exact_match`, and the mean cross-entropy in nats `loss`.
        """
        results = {metric: {} for metric in METRICS}
        for length in self.lengths:
            for metric, value in self._at(length).items():
                results[metric][length] = value
            progress(length)
        return results

    @property
    def traces(self):
        """How many programs were made for the forward pass so far."""
        return self._forward.experimental_get_tracing_count()

    def _at(self, length):
        total = self.task.total_length(length)
        padded = min(bucket for bucket in self.buckets if bucket >= total)
        batches, share = self.split(padded)
        sums = sum(
            self._measure(length, index, padded, share)
            for index in range(batches)
        )
        right, scored, exact, examples, loss, outputs = sums.tolist()
        return {
            "accuracy": right / scored,
            "exact_match": exact / examples,
            "loss": loss / outputs,
        }

    def split(self, padded):
        """Number of batches, and examples of each for every replica."""
        batches = -(-self.examples * padded**2 // PAIRS)
        replicas = self.strategy.num_replicas_in_sync
        return batches, -(-self.examples // (batches * replicas))

    def _measure(self, length, index, padded, share):
        """Sums over batch number `index` of examples of a length."""
        where = tf.constant(length), tf.constant(index)
        batch_size = share * self.strategy.num_replicas_in_sync
        batch = self._draw(
            *where, self._number(padded), self._number(batch_size)
        )

        return self._compute(*where, self._place(batch, share))

    def _place(self, batch, share):
        """A batch with the share of each replica on its device."""

        def part(context):
            start = context.replica_id_in_sync_group * share
            return {
                name: values[start : start + share] if values.ndim else values
                for name, values in batch.items()
            }

        return self.strategy.experimental_distribute_values_from_function(part)

    def _compute(self, length, index, batch):
        """Sums over a batch, as an array."""
        return self._run(length, index, batch).numpy()

    def _draw_batch(self, length, index, padded, batch_size):
        batch = evaluation_batch(
            self.task,
            seed=self.seed,
            index=index,
            batch_size=batch_size,
            length=length,
            padded_length=padded,
        )
        # Rounding up to whole batches draws some examples too many.
        number = index * batch_size + tf.range(batch_size)
        return {**batch, "used": number < self.examples}

    def _run_batch(self, length, index, batch):
        def on_replica(batch):
            # Negative numbers, which no training step has.
            set_seeds(self.model, self.seed, -length, index)
            return self._forward(batch)

        sums = self.strategy.run(on_replica, args=(batch,))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    def measure_batch(self, batch):
        """What one replica does with a batch: see `sums`."""
        return sums(self.model(inputs_of(batch), training=False), batch)


def sums(logits, batch):
    """What the metrics of an evaluation are made of.

    Returns:
        A float32 tensor of the numbers of right outputs, scored outputs,
        examples without a wrong output and examples, the sum of losses in
        nats, and the number of outputs.
    """
    used = batch["used"]
    hits = ops.argmax(logits, axis=-1) == batch["targets"]
    scored = ops.logical_and(batch["scored"], used[:, None])
    wrong = ops.logical_and(ops.logical_not(hits), batch["scored"])
    exact = ops.logical_and(ops.logical_not(ops.any(wrong, axis=-1)), used)
    answer = ops.logical_and(batch["answer"], used[:, None])
    losses = ops.where(answer, cross_entropies(logits, batch), 0.0)
    right = ops.logical_and(hits, scored)
    parts = (right, scored, exact, used, losses, answer)
    return ops.stack([ops.sum(ops.cast(part, "float32")) for part in parts])


def answer_loss(logits, batch):
    """Cross-entropies in nats of the outputs of a batch: sum and number."""
    answer = ops.cast(batch["answer"], "float32")
    losses = cross_entropies(logits, batch)
    return ops.sum(losses * answer), ops.sum(answer)


def cross_entropies(logits, batch):
    """Cross-entropies in nats of logits and targets, float32."""
    return ops.sparse_categorical_crossentropy(
        batch["targets"], ops.cast(logits, "float32"), from_logits=True
    )
