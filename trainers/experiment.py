"""Trains, evaluates, resumes, plots and reports a run."""

import contextlib
import dataclasses
import functools
import os
import pathlib
from collections.abc import Callable
from typing import Any

import keras

from datasets.buckets import length_buckets
from trainers.devices.interruption import StopRequest
from trainers.devices.workers import (
    check_same_data,
    check_same_flags,
    check_share,
    describe,
    directory_of_worker,
    refuse_together,
    watch_workers,
)
from trainers.engine import optimizer as optimizers
from trainers.engine.backend import EvaluationStep, TrainingStep, make_strategy
from trainers.engine.evaluation import LengthEvaluation
from trainers.engine.evaluation_sizes import PROGRAMS
from trainers.engine.loop import train
from trainers.engine.problem import Problem
from trainers.errors import ConfigError, as_config_errors
from trainers.options import command
from trainers.options.fields import describe_changes
from trainers.options.layers import (
    build,
    build_encoding,
    check_attention,
    with_max_position,
)
from trainers.options.own_classes import name_of, split_name
from trainers.records.checkpoints import Checkpoints, find_checkpoints
from trainers.records.initial_weights import (
    InitialWeights,
    read_initial_weights,
)
from trainers.records.metrics import Metrics
from trainers.records.opened_run import open_run
from trainers.records.plot import plot_results
from trainers.records.positions import describe_coverage, describe_positions
from trainers.records.progress import Line, Progress, show_evaluation
from trainers.records.results import (
    describe_floor,
    describe_score,
    describe_worst_kind,
)
from trainers.records.workdir import Workdir

DEMONSTRATION = {
    name: {"encoding": name} for name in ("RoPE", "RandomizedRoPE")
}
"""Variants to compare by default: a plain encoding and its randomized form."""


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
        demonstrations: Dict from the name of a preset to the variants that it
            compares if no encoding is given, a dict from their names to the
            fields that they set; presets that are missing: `DEMONSTRATION`.
    """

    name: str
    config: type
    presets: dict
    build_model: Callable
    make_problem: Callable
    demonstrations: dict = dataclasses.field(default_factory=dict)

    def run(self):
        """Runs the program with the flags of the command line."""
        command.run(self.config, self.presets, self.main)

    def main(self, config):
        """Trains one model, or one for each variant of the demonstration."""
        config = config.resolved
        problem = self.make_problem(config)
        name = name_of(config.encoding) or "demonstration"
        path = pathlib.Path(
            config.workdir or pathlib.Path("runs", name_of(problem.title), name)
        )
        if config.encoding:
            self.train(config, path)
            return
        variants = self.demonstrations.get(config.preset, DEMONSTRATION)
        results = {
            variant: self.train(
                dataclasses.replace(config, **fields), path / variant
            )
            for variant, fields in variants.items()
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
            directory_of_worker(strategy, path) as worker_path,
            contextlib.ExitStack() as stack,
        ):
            check_same_flags(strategy, config)
            config = with_max_position(config.resolved)
            check_share(strategy.num_replicas, config)
            check_attention(config)
            parts = model, _, problem = self.make_parts(config, strategy)
            with refuse_together(strategy), stop.at_once():
                problem.prepare()
            check_same_data(strategy, problem)
            workdir = Workdir(
                worker_path,
                config,
                self.name,
                data_digest=problem.data_digest,
                extensible=not _make_schedule(config).depends_on_steps,
            )
            read_initial = functools.partial(
                self._read_initial, config, model, problem, strategy, workdir
            )
            with refuse_together(strategy):
                # A mistake is found before anything is written.
                # `Path.exists` raises for a path that is too long.
                is_new = not os.path.exists(workdir.path / "config.json")
                initial = read_initial() if is_new else None
                stack.enter_context(workdir)
                results = workdir.results
                if results is None and initial is None:
                    initial = read_initial()
            finished = strategy.from_chief(results is not None)
            if finished:
                print(f"{workdir.path}: already finished, see results.json")
            else:
                run = _Run(
                    *(config, workdir, strategy, stop, *parts, initial),
                    presets=self.presets,
                )
                results = run.train()
        return results if strategy.is_chief else None

    def _read_initial(self, config, model, problem, strategy, workdir):
        """Reads the `InitialWeights` of a run; `None` where it needs none."""
        if not (config.initialize_from and strategy.is_chief):
            return None
        if find_checkpoints(workdir.path / "checkpoints", "checkpoint"):
            return None
        opened = open_run(config.initialize_from)
        if opened.experiment.name != self.name:
            raise ConfigError(
                f"--initialize_from={config.initialize_from} is a run of "
                f"trainers.{opened.experiment.name}: choose one of "
                f"trainers.{self.name}."
            )
        initial = read_initial_weights(opened, config, model)
        opened.check_data(problem, "or name other data by --data_dir")
        return initial

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
        with as_config_errors(ValueError), strategy.scope():
            model = self.build_model(config)
            optimizer = make_optimizer(config, model)
        return model, optimizer, self.make_problem(config)


def make_optimizer(config, model):
    """Makes the optimizer that a configuration describes, for a model."""
    return optimizers.make_optimizer(
        model,
        learning_rate=config.learning_rate,
        schedule=_make_schedule(config),
        steps=config.steps,
        warmup_steps=config.warmup_steps,
        weight_decay=config.weight_decay,
        scales_loss=config.precision == "mixed_float16",
    )


def _make_schedule(config):
    return build(config, "--learning_rate_schedule")


def make_evaluation(config, model, problem, strategy):
    """Makes the `LengthEvaluation` that a configuration describes."""
    step = EvaluationStep(**_common(config, model, problem, strategy))
    buckets = find_padded_lengths(config, problem, "evaluate")
    return LengthEvaluation(step, buckets)


def measure_model(model, problem, strategy, progress):
    """Returns what a problem measures of a whole model, on a single device."""
    # Replicas have copies of the model that only run in step.
    if strategy.num_replicas > 1:
        if problem.unmeasured:
            note = (
                f"{problem.unmeasured} are measured on one device alone: run "
                "`python -m trainers.evaluate RUN --strategy=one_device`."
            )
            problem.note = f"{problem.note} {note}".strip()
        return {}
    return problem.measure_model(model, progress)


def make_training_step(config, model, optimizer, problem, strategy):
    """Makes the `TrainingStep` that a configuration describes."""
    return TrainingStep(
        **_common(config, model, problem, strategy),
        optimizer=optimizer,
        buckets=find_padded_lengths(config, problem, "train"),
        clip_norm=config.clip_norm,
        gradient_accumulation_steps=config.gradient_accumulation_steps,
    )


def _common(config, model, problem, strategy):
    """Returns the arguments that both steps have in common."""
    return {
        "model": model,
        "problem": problem,
        "strategy": strategy,
        "seed": config.seed,
        "compiled": _should_compile(config, strategy),
    }


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


@dataclasses.dataclass
class _Run:
    """Trains the model of a run, evaluates it, and writes its records."""

    config: Any
    workdir: Workdir
    strategy: Any
    stop: StopRequest
    model: keras.Model
    optimizer: keras.optimizers.Optimizer
    problem: Problem
    initial: InitialWeights | None
    presets: dict

    def __post_init__(self):
        config, path = self.config, self.workdir.path
        layers = [split_name(t)[1] for t in (config.encoding, config.sampler)]
        self.name = ", ".join(filter(None, (self.problem.title, *layers)))
        self.metrics = Metrics(path, self.problem)
        self.checkpoints = Checkpoints(
            path,
            model=self.model,
            optimizer=self.optimizer,
            strategy=self.strategy,
            digest=self.workdir.digest,
            steps=config.steps,
            keep=config.keep_checkpoints,
            initial=self.initial and self.initial.values,
        )
        self.evaluation = make_evaluation(
            config, self.model, self.problem, self.strategy
        )

    def train(self):
        """Trains from the newest checkpoint to the end.

        Returns:
            The results; `None` on all workers but the first.
        """
        config = self.config
        print(f"{self.name}: {describe_changes(config, self.presets)}")
        print(
            f"  other settings: --preset={config.preset}, all of them in "
            f"{self.workdir.path}/config.json"
        )
        print(
            f"  {describe(self.strategy, config)}; "
            f"{self.model.count_params():,} parameters"
        )
        if self.initial:
            print(self.initial.describe())
        step = make_training_step(
            config, self.model, self.optimizer, self.problem, self.strategy
        )
        with self.checkpoints:
            seconds = train(
                step,
                self.checkpoints,
                steps=config.steps,
                steps_per_loop=config.steps_per_loop,
                checkpoint_every=config.checkpoint_every,
                evaluate_every=config.evaluate_every,
                callbacks=[
                    self.metrics,
                    Progress(self.name, steps=config.steps),
                    keras.callbacks.LambdaCallback(on_test_begin=self.evaluate),
                ],
                check=self.stop.check,
            )
            self.evaluate({"step": config.steps, "seconds": seconds})
        return self.report(seconds) if self.strategy.is_chief else None

    def evaluate(self, logs):
        """Measures all lengths, unless that was done, and keeps the best."""
        # Keras turns every log into a float.
        step, seconds = int(logs["step"]), logs["seconds"]
        line = Line()

        def progress(*done):
            show_evaluation(line, self.name, self.problem, *done)
            self.stop.check(lambda: self.checkpoints.save(step, seconds))

        done = self.metrics.has_evaluation(step)
        if not self.strategy.from_chief(done):
            found = self.evaluation(progress)
            positions = describe_positions(
                self.evaluation.positions, self.problem
            )
            if positions:
                self.workdir.write_json(
                    "positions.json", {"step": step, **positions}
                )
            self.metrics.add_evaluation(step, seconds, found)
        # The first worker alone has the metrics of earlier starts.
        best = self.strategy.is_chief and self.metrics.is_best(step)
        if self.strategy.from_chief(best):
            self.checkpoints.save_best(step, seconds)

    def report(self, seconds):
        """Writes the results and their plot; returns the results."""
        path = self.workdir.path
        line, name = Line(), f"{self.name}, generated"

        def progress(*done):
            show_evaluation(line, name, self.problem, *done)
            self.stop.check(lambda: None)

        of_model = measure_model(
            self.model, self.problem, self.strategy, progress
        )
        results = self.workdir.make_results(
            self.metrics, self.problem, self.strategy, seconds=seconds
        )
        positions = self.workdir.read_positions(results["final"]["step"])
        if positions:
            encoding = build_encoding(self.config)
            found = describe_coverage(self.problem, encoding)
            results["final"].update(positions, **found)
        results["final"].update(of_model)
        label = split_name(self.config.encoding)[1]
        plot_results(path, {label: results}, self.problem)
        # The last file: a run that has it is finished.
        self.workdir.write_json("results.json", results)
        for line in (
            self.problem.note and f"note: {self.problem.note}",
            describe_worst_kind(results),
        ):
            if line:
                print(line)
        found = describe_score(results, self.problem)
        floor = describe_floor(results, self.problem)
        found = "; ".join(filter(None, [found, floor]))
        print(f"{self.name}: {found}; see {path}/results.json")
        return results


def _should_compile(config, strategy):
    if config.compile != "auto":
        return config.compile == "always"
    # On CPUs, XLA was measured to be slower than TensorFlow's own kernels.
    return not all("CPU" in device for device in strategy.devices)
