"""Continues a prompt with a model trained on text, or answers it.

    python -m trainers.generate RUN --prompt='import '
    python -m trainers.generate RUN --prompt_file=start.txt --temperature=0.8
    python -m trainers.generate ANSWERS --prompt='53 + 449'

RUN is the working directory of a run of a text trainer, ANSWERS one of
`trainers.sequence_to_answer`; or one of their checkpoints. Positions are those
of the prompt and the new tokens together. An answer ends where the model ends
it.
"""

import dataclasses
import itertools
import sys

import numpy as np

from datasets.files import only_files
from trainers.answers.problem import AnswerProblem
from trainers.engine.backend import make_strategy
from trainers.errors import ConfigError
from trainers.labelled.problem import ClassProblem
from trainers.options.command import run
from trainers.options.evaluation import with_evaluation
from trainers.options.fields import RunConfig
from trainers.options.layers import (
    build_encoding,
    check_length,
    range_of_run,
)
from trainers.options.option import check_unused, option
from trainers.records.opened_run import open_run
from trainers.text.problem import TextProblem

MOST_BYTES = 2**26
"""Largest number of bytes of a prompt."""


@dataclasses.dataclass(frozen=True)
class GenerateConfig(RunConfig):
    """Flags of this command."""

    prompt: str = option("", "Text to continue.", is_text=True)
    prompt_file: str = option(
        "", "File with the text to continue.", is_path=True
    )
    max_new_tokens: int = option(
        0,
        "Number of tokens to generate; 0: 200 of a text; of an answer, as "
        "many as the longest one or the prompt has.",
        least=0,
        most=2**20,
    )
    temperature: float = option(
        0.0,
        "Sampling temperature; 0: greedy decoding.",
        least=0,
        most=100,
    )
    top_p: float = option(
        1.0,
        "Nucleus sampling: draw from the smallest set of tokens with this "
        "total probability.",
        above=0,
        most=1,
    )
    seed: int = option(0, "Seed of the sampling.", least=0)

    def validate(self):
        """Raises `ConfigError` for the first value that cannot work."""
        super().validate()
        if self.prompt and self.prompt_file:
            raise ConfigError("give --prompt or --prompt_file, not both.")
        if not self.temperature:
            reason = "without --temperature, such as --temperature=1"
            check_unused(self, ["top_p", "seed"], reason)


def main(config, text):
    """Continues a prompt on standard output, token by token."""
    opened = open_run(text, config.checkpoint, config.data_dir)
    changed = with_evaluation(opened.config, config.evaluation)
    problem = opened.experiment.make_problem(changed)
    describe, new_tokens = None, config.max_new_tokens or 200
    if isinstance(problem, TextProblem):
        vocabulary = problem.vocabulary
        if vocabulary is None:
            opened.prepare(problem)
            vocabulary = problem.splits["train"].vocabulary
        prompt = [vocabulary.begin, *vocabulary.tokenize(read_prompt(config))]
        known, decode, end_token = prompt[1:], vocabulary.detokenize, None
    elif isinstance(problem, AnswerProblem):
        prompt, describe = problem.read_prompt(read_prompt(config))
        known, decode, end_token = prompt, problem.read, problem.end_token
        longest = changed.longest_answer(problem.lengths[-1])
        new_tokens = config.max_new_tokens or max(longest, len(prompt))
    elif isinstance(problem, ClassProblem):
        model, _, _ = opened.experiment.make_parts(
            changed, make_strategy("one_device")
        )
        opened.load(model)
        print("\n".join(problem.classify(model, read_prompt(config))))
        return
    else:
        raise ConfigError(
            f"{text} is a run of {opened.experiment.name}, which has no text "
            "to continue."
        )
    tokens = len(prompt) + new_tokens
    with range_of_run("choose a shorter prompt, or fewer --max_new_tokens"):
        check_length(build_encoding(changed), tokens)
    model, _, _ = opened.experiment.make_parts(
        changed, make_strategy("one_device")
    )
    opened.load(model)
    stream = model.stream(
        np.array([prompt], np.int32),
        new_tokens,
        end_token=end_token,
        temperature=config.temperature,
        top_p=config.top_p,
        seed=config.seed,
    )
    found = write_stream(known, stream, decode)
    described = describe(found[len(known) :]) if describe else ""
    if described:
        print(described)


def write_stream(prompt, stream, decode):
    """Writes a prompt and the tokens that follow it as soon as they come.

    Args:
        prompt: List of token ids.
        stream: Iterator over arrays with one token id.
        decode: Function from token ids to a string.

    Returns:
        List of all token ids.
    """
    tokens, written = list(prompt), ""
    for found in itertools.chain([()], stream):
        tokens += [int(token) for token in found]
        # A character may have several tokens: one that is not whole waits.
        text = decode(tokens).rstrip("\N{REPLACEMENT CHARACTER}")
        sys.stdout.write(text[len(written) :])
        sys.stdout.flush()
        written = text
    sys.stdout.write(decode(tokens)[len(written) :] + "\n")
    return tokens


def read_prompt(config):
    """Returns the prompt."""
    if not config.prompt_file:
        return config.prompt
    try:
        with open(config.prompt_file, "rb", opener=only_files) as file:
            text = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(
            f"cannot read --prompt_file={config.prompt_file}: {error.strerror}."
        ) from None
    if len(text) > MOST_BYTES:
        raise ConfigError(
            f"--prompt_file={config.prompt_file} has more than {MOST_BYTES:,} "
            "bytes: choose a shorter one."
        )
    return text.decode(errors="surrogateescape")


if __name__ == "__main__":
    run(GenerateConfig, {}, main, operands="RUN")
