"""The run of a population in its working directory, in pieces of time."""

import time

from trainers.devices.interruption import StopRequest
from trainers.devices.one_device import OneDevice
from trainers.engine.loop import train
from trainers.engine.problem import average_unseen
from trainers.populations.records import (
    METRICS,
    Evaluation,
    MemberLosses,
    describe_members,
)
from trainers.records.checkpoints import Checkpoints
from trainers.records.progress import Line, Progress, show_length
from trainers.records.results import find_backend_version, versions
from trainers.records.workdir import Workdir


class PopulationRun:
    """Trains, evaluates and reports a population, or resumes it.

    Args:
        config: Configuration of the run.
        path: `pathlib.Path` of the working directory.
        task: `JaxTask` or `TaskForJax` that the population is trained on.
        make_population: Function of the configuration and of whether the
            device is a CPU; returns the `Population`.
    """

    def __init__(self, config, path, task, make_population):
        self._config = config
        self._path = path
        self._task = task
        self._device = OneDevice()
        self._make_population = make_population
        self._name = f"{config.task}, {config.encoding}"
        self._deadline = time.monotonic() + 60 * config.minutes

    def run(self):
        """Runs until the end, or until the time is up.

        Returns:
            Dict, the content of `results.json`; `None`: the time is up.

        Raises:
            ConfigError: If a mistake is found before work starts.
            TrainingError: If training fails.
            StoppedError: If a signal asked to stop; the state is saved.
        """
        population = self._make_population(
            self._config, self._device.kind == "cpu"
        )
        with (
            StopRequest(self._device) as stop,
            Workdir(self._path, self._config, "population") as workdir,
        ):
            results = workdir.results
            if results is not None:
                print(f"{self._path}: already finished, see results.json")
                return results
            try:
                return self._finish(population, workdir, stop)
            except _TimeIsUpError:
                print(
                    f"{self._name}: stopped after {self._config.minutes:g} "
                    "minutes: run the same command again to resume."
                )
                return None

    def _finish(self, population, workdir, stop):
        config = self._config
        models, at_once = len(population.members), population.at_once
        devices = ", ".join(self._device.devices)
        print(f"{self._name}: {models} models, {at_once} at once, on {devices}")
        losses = MemberLosses(self._path, population)
        with Checkpoints(
            self._path,
            model=population.weights,
            optimizer=population.slots,
            strategy=self._device,
            digest=workdir.digest,
            steps=config.steps,
            keep=config.keep_checkpoints,
        ) as checkpoints:

            def check(save):
                stop.check(save)
                if config.minutes and time.monotonic() >= self._deadline:
                    save()
                    checkpoints.wait()
                    raise _TimeIsUpError

            seconds = train(
                population,
                checkpoints,
                steps=config.steps,
                steps_per_loop=config.steps_per_loop,
                checkpoint_every=config.checkpoint_every,
                callbacks=[losses, Progress(self._name, steps=config.steps)],
                check=check,
            )
            evaluation = Evaluation(
                self._path, workdir.digest, config.steps, models
            )
            self._evaluate(population, evaluation, check)
        results = {
            **self._describe(workdir, seconds, evaluation),
            **describe_members(
                population,
                losses.read_last(),
                evaluation.sums,
                max(config.trained_lengths),
                population.find_diverged(config.steps),
            ),
        }
        workdir.write_json("results.json", results)
        found = results["all"]
        lost = len(results["members"]) - found["members"]
        # The score of the strongest trivial predictor.
        floor = average_unseen(
            {
                length: max(value, results["position_only_by_length"][length])
                for length, value in results["floor_by_length"].items()
            },
            max(config.trained_lengths),
        )
        print(
            f"{self._name}: {METRICS[0]} of the best model {found['best']:.3f},"
            f" mean {found['mean']:.3f}, floor {floor:.3f}, {lost} diverged, "
            f"see {self._path}/results.json"
        )
        return results

    def _evaluate(self, population, evaluation, check):
        line, lengths = Line(), self._config.evaluated_lengths
        text = f"{self._name}: evaluated length"
        diverged = list(population.find_diverged(self._config.steps))
        for length in lengths:
            if length not in evaluation.sums:
                start = time.monotonic()
                sums = population.evaluate(
                    length, self._config.evaluation_examples
                )
                # They may not be finite, and nobody reads them.
                sums[diverged] = 0
                evaluation.add(length, sums, time.monotonic() - start)
                show_length(line, text, lengths, length)
                check(lambda: None)

    def _describe(self, workdir, seconds, evaluation):
        """Returns what the results say of the run, its floors and times."""
        config, lengths = self._config, self._config.evaluated_lengths
        models, steps = len(config.members), config.steps
        floors = {
            "floor": self._task.floor_accuracy,
            "position_only": self._task.position_only_accuracy,
        }
        return {
            "trainer": "population",
            "digest": workdir.digest,
            "config": workdir.config,
            "versions": versions(),
            "computed_by": {
                "backend": "jax",
                "backend_version": find_backend_version(),
                "devices": list(self._device.devices),
                "precision": config.precision,
            },
            "score_metric": METRICS[0],
            "higher_is_better": True,
            **{
                f"{name}_by_length": {str(n): find(n) for n in lengths}
                for name, find in floors.items()
            },
            "train": {
                "steps": steps,
                "seconds": seconds,
                "steps_per_second": steps / max(seconds, 1e-9),
                "models": models,
                "models_per_hour": 3600 * models / max(seconds, 1e-9),
            },
            "evaluation": {"seconds": evaluation.seconds},
        }


class _TimeIsUpError(Exception):
    """A piece of a run has ended; its state is saved."""
