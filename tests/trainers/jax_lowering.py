"""Compares programs that are lowered for a slice with those that runs use.

Runs on JAX, with four CPU devices instead of the chips of a slice.
"""

import jax

from trainers.devices.jax_strategy import JaxStrategy
from trainers.engine.evaluation import LengthEvaluation
from trainers.engine.jax_step import JaxEvaluationStep, JaxTrainingStep
from trainers.options.fields import resolve
from trainers.tpu.jax_programs import lower
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.requests import list_programs

FLAGS = {
    "trainer": "encoder",
    "encoding": "RandomizedRoPE",
    "train_length": "6",
    "test_lengths": "6",
    "batch_size": 16,
    "gradient_accumulation_steps": 2,
}


class Devices:
    """CPU devices instead of the chips of a `Topology`."""

    chips = 4
    devices = staticmethod(jax.devices)


def run(program):
    """Runs a program as a trainer does; returns what it lowered."""
    strategy = JaxStrategy(jax.devices())
    config = program.config
    model, optimizer, problem = program.experiment.make_parts(config, strategy)
    common = {
        "model": model,
        "problem": problem,
        "strategy": strategy,
        "seed": config.seed,
        "compiled": True,
    }
    lowered = []

    def record(function):
        def call(*arguments):
            lowered.append(function.lower(*arguments))
            return function(*arguments)

        return call

    if program.mode == "train":
        step = JaxTrainingStep(
            **common,
            optimizer=optimizer,
            buckets=(program.tokens,),
            clip_norm=config.clip_norm,
            gradient_accumulation_steps=config.gradient_accumulation_steps,
        )
        step.update = record(step.update)
        step.run(step.iterate(0, 1), 0, 1)
    else:
        step = JaxEvaluationStep(**common)
        step.measure = record(step.measure)
        LengthEvaluation(step, (program.tokens,))()
    return lowered[0]


def main():
    """Prints the mode, a chip's examples, and whether the programs agree."""
    for program in list_programs(resolve(TpuCompileConfig, PRESETS, FLAGS)):
        lowered, examples, _ = lower(
            program.experiment,
            program.config,
            program.mode,
            program.tokens,
            Devices,
        )
        agree = lowered.as_text() == run(program).as_text()
        print(program.mode, examples, agree, flush=True)


if __name__ == "__main__":
    main()
