"""Trains, evaluates, resumes, plots and reports a run."""

import dataclasses
import importlib
import pathlib
from collections.abc import Callable

import keras

import trainers
from datasets.buckets import length_buckets
from trainers.cluster.interruption import StopRequest
from trainers.cluster.workers import (
    check_same_flags,
    check_share,
    describe,
    directory_of_worker,
    watch_workers,
)
from trainers.engine import optimizer
from trainers.engine.backend import EvaluationStep, TrainingStep, make_strategy
from trainers.engine.evaluation import PROGRAMS, LengthEvaluation
from trainers.engine.loop import train
from trainers.errors import ConfigError
from trainers.options import command
from trainers.options.layers import build, with_max_position
from trainers.records.checkpoints import Checkpoints
from trainers.records.metrics import Metrics
from trainers.records.plot import plot_results
from trainers.records.progress import Line, Progress
from trainers.records.workdir import Workdir

DEMONSTRATION = ("RoPE", "RandomizedRoPE")
"""Encodings to compare by default: a plain one and its randomized form."""


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A program that trains a model on a problem.

    Attributes:
        name: str. Name of its module below `trainers`, and of `--trainer`.
        config: Class of its configurations, a `TrainerConfig`.
        presets: Dict from the name of a preset to the fields it sets.
        build_model: Function of a configuration, called under the strategy;
            returns a built Keras model.
        make_problem: Function of a configuration; returns a `Problem`. It
            should read no data: a command may need only the title.
    """

    name: str
    config: type
    presets: dict
    build_model: Callable
    make_problem: Callable

    def run(self):
        """Runs the program with the flags of the command line."""
        command.run(self.config, self.presets, self.main)

    def main(self, config):
        """Trains one model, or one for each encoding of the demonstration."""
        problem = self.make_problem(config)
        name = config.encoding.partition("(")[0] or "demonstration"
        path = pathlib.Path(
            config.workdir or pathlib.Path("runs", problem.title, name)
        )
        if config.encoding:
            self.train(config, path)
            return
        results = {
            encoding: self.train(
                dataclasses.replace(config, encoding=encoding), path / encoding
            )
            for encoding in DEMONSTRATION
        }
        if all(results.values()):
            plot_results(path, results, problem)

    def train(self, config, path):
        """Trains one model in a working directory, or resumes it there.

        Args:
            config: Configuration with an encoding.
            path: `pathlib.Path` of the working directory.

        Returns:
            Dict, the content of `results.json`; `None` on all workers but
            the first.

        Raises:
            ConfigError: If a mistake is found before work starts.
            TrainingError: If training fails.
            StoppedError: If a signal asked to stop; the state is saved.
            WorkerLostError: If another worker is gone.
        """
        # First: several workers must connect before anything is computed.
        strategy = make_strategy(config.strategy, config.tpu)
        with (
            watch_workers(strategy),
            StopRequest(strategy) as stop,
            directory_of_worker(strategy, path) as own_path,
        ):
            check_same_flags(strategy, config)
            results = _train(self, config, own_path, strategy, stop)
        return results if own_path == path else None

    def make_parts(self, config, strategy):
        """Makes the model, its optimizer and the problem of a run.

        Args:
            config: Configuration with an encoding.
            strategy: The `Strategy`.

        Returns:
            A built Keras model, a built optimizer, a `Problem`.

        Raises:
            ConfigError: If they cannot be made.
        """
        keras.utils.set_random_seed(config.seed)
        try:
            with strategy.scope():
                model = self.build_model(config)
                made = make_optimizer(config, model)
        except ValueError as error:
            raise ConfigError(str(error)) from None
        return model, made, self.make_problem(config)


def registered():
    """Returns all `Experiment`s by name."""
    return {
        name: importlib.import_module(module).EXPERIMENT
        for name, module in trainers.EXPERIMENTS.items()
    }


def make_optimizer(config, model):
    """Makes the optimizer that a configuration describes, for a model."""
    return optimizer.make_optimizer(
        model,
        learning_rate=config.learning_rate,
        schedule=build(config, "--learning_rate_schedule"),
        steps=config.steps,
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        scales_loss=config.precision == "mixed_float16",
    )


def find_padded_lengths(config, problem, mode):
    """Returns the padded lengths of a run, in tokens, increasing.

    Args:
        config: Configuration of the run.
        problem: Its `Problem`.
        mode: `"train"` or `"evaluate"`.
    """
    lengths, count = {
        "train": (config.trained_lengths, config.buckets),
        "evaluate": (problem.lengths, PROGRAMS),
    }[mode]
    return length_buckets([problem.tokens(n) for n in lengths], count)


def _train(experiment, config, path, strategy, stop):
    config = with_max_position(config)
    check_share(strategy.num_replicas, config)
    model, made, problem = experiment.make_parts(config, strategy)
    workdir = Workdir(path, config)
    name = f"{problem.title}, {config.encoding}"
    if strategy.from_chief(workdir.results is not None):
        print(f"{name}: already finished, see {path}/results.json")
        return workdir.results
    for field, value in dataclasses.asdict(config).items():
        print(f"  {field} = {value!r}")
    print(
        f"  {describe(strategy, config)}; {model.count_params():,} parameters"
    )

    metrics = Metrics(path, problem)
    checkpoints = Checkpoints(
        path,
        model=model,
        optimizer=made,
        strategy=strategy,
        keep=config.keep_checkpoints,
    )
    common = {
        "model": model,
        "problem": problem,
        "strategy": strategy,
        "seed": config.seed,
        "compiled": _should_compile(config, strategy),
    }
    evaluation = LengthEvaluation(
        EvaluationStep(**common),
        find_padded_lengths(config, problem, "evaluate"),
    )

    def evaluate(logs):
        # Keras turns every log into a float.
        step, seconds = int(logs["step"]), logs["seconds"]
        last = problem.lengths[-1]
        line = Line()

        def progress(length):
            text = f"{name}: evaluated length {length}/{last}"
            line.show(text, last=length == last)
            stop.check(lambda: checkpoints.save(step, seconds))

        if not strategy.from_chief(metrics.has_evaluation(step)):
            metrics.add_evaluation(step, seconds, evaluation(progress))
        # The first worker alone has the metrics of earlier starts.
        if strategy.from_chief(metrics.is_best(step)):
            checkpoints.save_best(step, seconds)

    step = TrainingStep(
        **common,
        optimizer=made,
        buckets=find_padded_lengths(config, problem, "train"),
        clip_norm=config.clip_norm,
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
    results = workdir.make_results(metrics, problem, seconds=seconds)
    plot_results(path, {config.encoding: results}, problem)
    # The last file: a run that has it is finished.
    workdir.write_json("results.json", results)
    score = results["final"]["score"]
    print(f"{name}: score {score:.3f}, see {path}/results.json")
    return results


def _should_compile(config, strategy):
    if config.compile != "auto":
        return config.compile == "true"
    # On CPUs, XLA was measured to be slower than TensorFlow's own kernels.
    return not all("CPU" in device for device in strategy.devices)
