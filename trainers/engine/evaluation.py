"""The metrics of a model at every length, with few programs."""

import tensorflow as tf

from trainers.engine.loop import on_tpu, set_seeds

PROGRAMS = 10
"""Most padded lengths that an evaluation computes."""

PAIRS = 2**24
"""Most pairs of tokens of a batch, so that attention fits in memory."""


class LengthEvaluation:
    """Measures a model at each of several lengths.

    Args:
        model: Built Keras model.
        problem: The `Problem`.
        strategy: The `tf.distribute` strategy.
        buckets: Padded lengths to compute, increasing, in tokens.
        seed: Seed of what the model draws.
        compiled: Whether XLA compiles the forward pass.
    """

    def __init__(
        self,
        model,
        problem,
        strategy,
        *,
        buckets,
        seed,
        compiled,
    ):
        self.model = model
        self.problem = problem
        self.strategy = strategy
        self.buckets = buckets
        self.seed = seed
        self._compile(compiled)

    def _compile(self, compiled):
        # Compiled, every padded length is a program; otherwise one is enough.
        self._number = int if compiled else tf.constant
        self.draw = tf.function(self._draw_batch)
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
            `{metric: {length: value}}`.
        """
        results = {metric.name: {} for metric in self.problem.metrics}
        for length in self.problem.lengths:
            for metric, value in self._at(length).items():
                results[metric][length] = value
            progress(length)
        return results

    @property
    def traces(self):
        """How many programs were made for the forward pass so far."""
        return self._forward.experimental_get_tracing_count()

    def _at(self, length):
        tokens = self.problem.tokens(length)
        padded = min(bucket for bucket in self.buckets if bucket >= tokens)
        batches, share = split(
            self.problem.evaluation_examples(length),
            padded,
            self.strategy.num_replicas_in_sync,
        )
        sums = sum(
            self._measure(length, index, padded, share)
            for index in range(batches)
        )
        return self.problem.measure(sums)

    def _measure(self, length, index, padded, share):
        """Sums over batch number `index` of examples of a length."""
        where = tf.constant(length), tf.constant(index)
        batch_size = share * self.strategy.num_replicas_in_sync
        batch = self.draw(
            *where,
            self._number(padded),
            self._number(batch_size),
            tf.constant(self.problem.evaluation_examples(length)),
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

    def _draw_batch(self, length, index, padded, batch_size, examples):
        batch = self.problem.evaluation_batch(
            index=index,
            batch_size=batch_size,
            length=length,
            padded_length=padded,
        )
        # Rounding up to whole batches draws some examples too many.
        number = index * batch_size + tf.range(batch_size)
        return {**batch, "used": number < examples}

    def _run_batch(self, length, index, batch):
        def on_replica(batch):
            # Negative numbers, which no training step has.
            set_seeds(self.model, self.seed, -length, index)
            return self._forward(batch)

        sums = self.strategy.run(on_replica, args=(batch,))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    def measure_batch(self, batch):
        """What one replica does with a batch: see `Problem.sums`."""
        outputs = self.model(self.problem.inputs(batch), training=False)
        return self.problem.sums(outputs, batch)


def split(examples, padded_length, replicas):
    """Returns the number of batches, and the examples of each for a replica.

    Args:
        examples: Number of examples to evaluate.
        padded_length: Number of tokens of each.
        replicas: Number of replicas that share a batch.
    """
    batches = -(-examples * padded_length**2 // PAIRS)
    return batches, -(-examples // (batches * replicas))
