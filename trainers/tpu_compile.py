"""Compiles a trainer's programs for a TPU, on a machine without a TPU.

    python -m trainers.tpu_compile --topology=v5e:2x2 --encoding=RandomizedRoPE
    KERAS_BACKEND=jax python -m trainers.tpu_compile --topology=v6e:2x2
    python -m trainers.tpu_compile --trainer=enwik8 --dataset=python_source

The programs are the training step and the evaluation of a batch, of TensorFlow
or of JAX. Reports for each program whether it compiles, whether it fits into a
chip's memory, how much it computes, reads and writes, and the least time of a
step. Results are appended to one file, with one line for each program. A
program with a result in the file is not compiled again.
"""

from trainers.errors import ConfigError, TrainingError
from trainers.options.command import run
from trainers.tpu import table as tpu_table
from trainers.tpu.compilation import compile_all
from trainers.tpu.compiler import Topology
from trainers.tpu.options import PRESETS, TpuCompileConfig
from trainers.tpu.requests import list_programs, list_table


def main(config):
    """Compiles the programs of a configuration and writes their results.

    Args:
        config: `TpuCompileConfig`.

    Raises:
        ConfigError: If the library refuses the configuration.
        TrainingError: If a program does not compile or is too large.
    """
    Topology(config.topology).devices()
    table = config.table
    path = config.results or (tpu_table.TABLE if table else tpu_table.OWN)
    results = tpu_table.Results(path)
    print(f"results: {path}", flush=True)
    # The flags of the table overlap.
    wanted = list_table() if table else list_programs(config)
    wanted = list(dict.fromkeys(wanted))
    missing = [
        program
        for program in wanted
        if config.force or program.key not in results
    ]
    if len(missing) < len(wanted):
        print(
            f"{len(wanted) - len(missing)} of {len(wanted)} programs are in "
            f"{path} already; --force compiles them again."
        )
        for program in wanted if not table else ():
            if program not in missing:
                print(tpu_table.describe(results[program.key]))
    compile_all(missing, results, config.jobs)
    results.write_report()
    found = [results[program.key] for program in wanted]
    unusable = [row for row in found if row["status"] in tpu_table.UNUSABLE]
    if unusable:
        raise TrainingError(
            f"{len(unusable)} of {len(found)} programs cannot run, see {path}; "
            f"the first: {unusable[0]['reason']}"
        )
    refused = [row for row in found if row["status"] == "refused"]
    if refused and not table:
        raise ConfigError(refused[0]["reason"])


if __name__ == "__main__":
    run(TpuCompileConfig, PRESETS, main)
