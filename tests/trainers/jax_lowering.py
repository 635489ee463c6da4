"""Compares programs that are lowered for a slice with those that runs use.

Runs on JAX, with four CPU devices instead of the chips of a slice.
"""

import types

import jax

from trainers.devices.jax_strategy import JaxStrategy
from trainers.experiment import make_evaluation, make_training_step
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
# CPU devices instead of the chips of a `Topology`.
CHIPS = types.SimpleNamespace(chips=4, devices=jax.devices)


def run(program):
    """Runs a program as a trainer does; returns the text of what it lowered."""
    strategy = JaxStrategy(jax.devices())
    config = program.config
    model, optimizer, problem = program.experiment.make_parts(config, strategy)
    texts = []

    def record(function):
        def call(*arguments):
            texts.append(function.lower(*arguments).as_text())
            return function(*arguments)

        return call

    if program.mode == "train":
        step = make_training_step(config, model, optimizer, problem, strategy)
        step.update = record(step.update)
        step.run(step.iterate(0, 1), 0, 1)
    else:
        evaluation = make_evaluation(config, model, problem, strategy)
        evaluation.step.measure = record(evaluation.step.measure)
        evaluation()
    return texts[0]


if __name__ == "__main__":
    for program in list_programs(resolve(TpuCompileConfig, PRESETS, FLAGS)):
        lowered, examples, _ = lower(
            program.experiment,
            program.config,
            program.mode,
            program.tokens,
            CHIPS,
        )
        agree = lowered.as_text() == run(program)
        print(program.mode, examples, agree, flush=True)
