"""Trains a Transformer on an algorithmic task and tests it at every length.

Without `--encoding`, trains the demonstration: the same model with a plain
encoding and with its randomized form, both curves in one plot.

    python -m trainers.algorithmic
    python -m trainers.algorithmic --task=reverse_string --encoding=ALiBi
"""

import dataclasses
import math
import pathlib

import keras

from datasets import pipeline
from datasets.curricula import CURRICULA
from datasets.tasks import TASKS
from keras_lengen.layers import ATTENTIONS
from keras_lengen.models import TransformerEncoder
from trainers.backend import LengthEvaluation, TrainingStep, make_strategy
from trainers.checkpoints import Checkpoints
from trainers.config import (
    ConfigError,
    TrainerConfig,
    build,
    build_encoding,
    check_choice,
    check_positions,
    option,
    run,
)
from trainers.interruption import StopRequest
from trainers.length_evaluation import answer_loss
from trainers.loop import Problem, train
from trainers.optimizer import make_optimizer
from trainers.plot import plot_lengths
from trainers.progress import Line, Progress
from trainers.strategies import (
    check_batch,
    check_same_flags,
    describe,
    devices_of,
    directory_of_worker,
    from_chief,
    watch_workers,
)
from trainers.workdir import Metrics, Workdir

DEMONSTRATION = ("RoPE", "RandomizedRoPE")
"""The plain encoding and its randomized form that are shown by default."""


@dataclasses.dataclass(frozen=True)
class AlgorithmicConfig(TrainerConfig):
    """Flags of this trainer."""

    encoding: str = option(
        "", "Encoding, by name or call; none: plain against randomized."
    )
    task: str = option("even_pairs", "Task, by name.")
    curriculum: str = option(
        "Uniform", "What draws the trained lengths, by name or call."
    )

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        check_choice("--task", self.task, tuple(TASKS))
        build(self, "--curriculum", CURRICULA)
        if self.sampler and not self.encoding:
            raise ConfigError("--sampler needs an --encoding to go with.")

    def total_length(self, length):
        """Tokens of a problem: its input and a slot per output."""
        return TASKS[self.task].total_length(length)


PRESETS = {
    "small": {},
    # Ruoss et al., 2023, section 4 and appendix A.
    "paper": {
        "max_position": 2048,
        "num_layers": 5,
        "steps": 2_000_000,
        "learning_rate": 3e-4,
        "train_length": "1-40",
        "test_lengths": "1-500",
        "evaluation_examples": 500,
        "steps_per_loop": 100,
        "checkpoint_every": 10_000,
        "evaluate_every": 100_000,
    },
}


def main(config):
    """Trains what the configuration says and reports where results are."""
    if config.encoding:
        name = config.encoding.partition("(")[0]
        path = config.workdir or f"runs/{config.task}/{name}"
        train_and_evaluate(config, path)
        return
    path = pathlib.Path(config.workdir or f"runs/{config.task}/demonstration")
    results = {}
    for encoding in DEMONSTRATION:
        variant = dataclasses.replace(config, encoding=encoding)
        results[encoding] = train_and_evaluate(variant, path / encoding)
    if all(results.values()):
        plot(path, results, config)


def train_and_evaluate(config, path):
    """Trains one model in a working directory, or resumes it there.

    Returns:
        The content of `results.json`; `None` in all but the first of several
        workers.

    Raises:
        ConfigError: If something is wrong that can be known before.
        TrainingError: If training fails.
        StoppedError: If a signal asked to stop; all is saved.
        WorkerLostError: If another worker is gone.
    """
    # First of all: several workers must meet before anything is computed.
    strategy = make_strategy(config.strategy, config.tpu)
    with (
        watch_workers(strategy),
        StopRequest(strategy) as stop,
        directory_of_worker(strategy, path) as own_path,
    ):
        check_same_flags(strategy, config)
        results = _train_and_evaluate(config, own_path, strategy, stop)
    return results if own_path == path else None


def _train_and_evaluate(config, path, strategy, stop):
    task = TASKS[config.task]
    config = with_max_position(config)
    check_batch(strategy, config)
    model, optimizer = build_model(config, strategy)
    workdir = Workdir(path, config)
    name = f"{config.task}, {config.encoding}"
    if from_chief(strategy, workdir.results is not None):
        print(f"{name}: already finished, see {path}/results.json")
        return workdir.results
    for field, value in dataclasses.asdict(config).items():
        print(f"  {field} = {value!r}")
    print(
        f"  {describe(strategy, config)}; {model.count_params():,} parameters"
    )

    compiled = _compiled(config, strategy)
    metrics = Metrics(path, longest_trained=max(config.trained_lengths))
    checkpoints = Checkpoints(
        path,
        model=model,
        optimizer=optimizer,
        strategy=strategy,
        keep=config.keep_checkpoints,
    )
    evaluation = LengthEvaluation(
        model,
        task,
        config.evaluated_lengths,
        strategy,
        examples=config.evaluation_examples,
        seed=config.seed,
        compiled=compiled,
    )

    def evaluate(logs):
        # Keras turns every log into a float.
        step, seconds = int(logs["step"]), logs["seconds"]
        lengths = config.evaluated_lengths
        line = Line()

        def progress(length):
            text = f"{name}: evaluated length {length}/{lengths[-1]}"
            line.show(text, last=length == lengths[-1])
            stop.check(lambda: checkpoints.save(step, seconds))

        if not from_chief(strategy, metrics.has_evaluation(step, lengths)):
            metrics.add_evaluation(step, seconds, evaluation(progress))
        # The first worker alone has the metrics of earlier starts.
        if from_chief(strategy, metrics.is_best(step)):
            checkpoints.save_best(step, seconds)

    step = TrainingStep(
        model,
        optimizer,
        problem_of(config),
        strategy,
        seed=config.seed,
        clip_norm=config.clip_norm,
        compiled=compiled,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
    )
    with checkpoints:
        seconds = train(
            step,
            checkpoints,
            steps=config.steps,
            steps_per_loop=config.steps_per_loop,
            checkpoint_every=config.checkpoint_every,
            evaluate_every=config.evaluate_every,
            callbacks=[
                metrics,
                Progress(name, steps=config.steps),
                keras.callbacks.LambdaCallback(on_test_begin=evaluate),
            ],
            check=stop.check,
        )
        evaluate({"step": config.steps, "seconds": seconds})
    floors = {
        "floor_by_length": _floors(config, task.floor_accuracy),
        "position_only_by_length": _floors(config, task.position_only_accuracy),
    }
    results = workdir.results_of(metrics, seconds=seconds, floors=floors)
    plot(path, {config.encoding: results}, config)
    # The last file: a run that has it is finished.
    workdir.write_json("results.json", results)
    score = results["final"]["score"]
    print(f"{name}: score {score:.3f}, see {path}/results.json")
    return results


def plot(path, results, config):
    """Draws the curves of several results in one plot."""
    first = next(iter(results.values()))
    written = plot_lengths(
        pathlib.Path(path) / "length_generalization.png",
        {
            label: result["final"]["accuracy_by_length"]
            for label, result in results.items()
        },
        title=f"{config.task}: trained on lengths {config.train_length}",
        longest_trained=max(config.trained_lengths),
        floors={
            "tokens without positions": first["floor_by_length"],
            "positions without tokens": first["position_only_by_length"],
        },
    )
    if written:
        print(f"plot: {written}")
    else:
        print("no plot: matplotlib is not installed (extra: plots)")


def with_max_position(config):
    """The configuration with positions for the longest sequence.

    Raises:
        ConfigError: If there are positions for shorter ones only.
    """
    tokens = config.total_length(max(config.evaluated_lengths))
    if not config.max_position:
        # Some room, so that positions stay random at the longest length.
        reach = 2 ** math.ceil(math.log2(1.25 * tokens))
        config = dataclasses.replace(config, max_position=reach)
    check_positions(build_encoding(config), tokens)
    return config


def build_model(config, strategy):
    """The model and its optimizer, made under the strategy."""
    task = TASKS[config.task]
    keras.utils.set_random_seed(config.seed)
    try:
        with strategy.scope():
            model = TransformerEncoder(
                # One id more for the empty output tokens.
                vocabulary_size=task.input_vocabulary_size + 1,
                output_size=task.output_vocabulary_size,
                num_layers=config.num_layers,
                num_heads=config.num_heads,
                model_dim=config.model_dim,
                dropout=config.dropout,
                encoding=build_encoding(config),
                attention=ATTENTIONS[config.attention],
                draw=config.draw,
                dtype=config.precision,
            )
            optimizer = make_optimizer(config, model)
    except ValueError as error:
        raise ConfigError(str(error)) from None
    return model, optimizer


def problem_of(config):
    """What the training loop needs to know of a task."""
    task = TASKS[config.task]
    lengths = config.trained_lengths
    curriculum = build(config, "--curriculum", CURRICULA)
    buckets = pipeline.length_buckets(
        [task.total_length(length) for length in lengths], config.buckets
    )

    def dataset(first_step, last_step, context):
        return pipeline.training_dataset(
            task,
            lengths=lengths,
            curriculum=curriculum,
            batch_size=config.batch_size,
            seed=config.seed,
            padded_length=buckets[-1],
            first_step=first_step,
            last_step=last_step,
            context=context,
        )

    def bucket(step):
        length = pipeline.length_at(config.seed, step, lengths, curriculum)
        return pipeline.bucket_of(task.total_length(length), buckets)

    return Problem(dataset, buckets, bucket, answer_loss)


def _compiled(config, strategy):
    if config.compile != "auto":
        return config.compile == "true"
    # On CPUs, XLA was measured to be slower than TensorFlow's own kernels.
    devices = devices_of(strategy)
    return not all("CPU" in device for device in devices)


def _floors(config, accuracy):
    return {
        str(length): accuracy(length) for length in config.evaluated_lengths
    }


if __name__ == "__main__":
    run(AlgorithmicConfig, PRESETS, main)
