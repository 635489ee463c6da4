"""Products of long numbers, a digit at a time, by a model with near keys only.

Trains models of `multiply_add` with several seeds on numbers of up to 5 digits:
they multiply a number by one digit and add another number. Each writes its
results for longer ones, and long multiplication: what it wrote for one digit of
the factor is part of the prompt of the next one.

Flags, resuming and the report are as in `benchmarks.addition`.

    python -m benchmarks.long_multiplication
"""

import numpy as np
from absl import app, flags

from benchmarks.measure import DEFINE_count
from benchmarks.runs import define_flags, make_row, report
from datasets.text_tasks.arithmetic import COLUMNS
from datasets.text_tasks.structured_digits import TERMS_OF_KIND
from trainers.engine.backend import make_strategy
from trainers.records.opened_run import open_run
from trainers.records.results import find_kinds

FLAGS = flags.FLAGS
define_flags("long_multiplication", jobs=2)
DEFINE_count("seeds", 3, "Number of seeds.")
flags.DEFINE_list(
    "factors",
    ["5", "20", "50", "100", "200"],
    "Digits of the numbers to multiply.",
)
DEFINE_count("products", 2, "Products of each kind at each of these lengths.")
TRAINING = {
    "preset": "addition",
    "task": "multiply_add",
    "sampler": "CoupledPositions",
    "encoding": "ClippedBias(max_distance=2, slope=None)",
    "model_dim": 64,
    "num_layers": 3,
    "batch_size": 64,
    "learning_rate": 4e-3,
    "steps": 12_000,
    "buckets": 1,
    "train_length": "1-5",
    "test_lengths": "20,50,100",
    "evaluation_examples": 60,
    "generated_examples": 0,
}
"""Flags of the training of all models."""
MEASURED = ("exact_match_by_length", "token_accuracy_by_length")


def list_rows():
    """Yields the `Row` of every run."""
    for seed in range(FLAGS.seeds):
        flags = {**TRAINING, "seed": seed}
        yield make_row("sequence_to_answer", flags, seed=seed)


def measure(row, workdir, results):
    """Returns what the report has of a finished run."""
    del row
    model, problem = load(workdir)
    return {
        **{name: results["final"][name] for name in MEASURED},
        "by_kind": find_kinds(results),
        "products": measure_products(model, problem),
        "columns": count_totals(model, problem),
    }


def load(workdir):
    """Returns the model and the `AnswerProblem` of a run."""
    opened = open_run(str(workdir))
    model, _, problem = opened.experiment.make_parts(
        opened.config, make_strategy("one_device")
    )
    opened.load(model)
    return model, problem


def count_totals(model, problem, digits=20, batches=60, batch_size=100):
    """Counts the wrong totals of uniform steps, given correct words before.

    Returns:
        Dict with the numbers of `"totals"` and of those that are `"wrong"`, and
        how many `"combinations"` of a factor, a digit, a digit that is added
        and a carry the totals cover.
    """
    task, vocabulary = problem.task, problem.vocabulary
    rng = np.random.default_rng(0)
    wrong, found = 0, set()
    for _ in range(batches):
        asked = [task.draw(rng, (digits,), 0) for _ in range(batch_size)]
        answers = [vocabulary.tokenize(task.write_answer(p)) for p in asked]
        prompts = [vocabulary.tokenize(task.write_prompt(p)) for p in asked]
        texts = [
            [*prompt, *answer[:-1]]
            for prompt, answer in zip(prompts, answers, strict=True)
        ]
        inputs = {"token_ids": np.array(texts, np.int32)}
        logits = np.asarray(model(inputs, training=False))
        written = logits[:, -digits - 1 :].argmax(-1)
        wrong += int((written != answers).sum())
        for added, factor, number in asked:
            for unit in (10**place for place in range(digits + 1)):
                carry = (factor * (number % unit) + added % unit) // unit
                column = number // unit % 10, added // unit % 10
                found.add((factor, *column, carry))
    return {
        "totals": batches * batch_size * (digits + 1),
        "wrong": wrong,
        "combinations": len(found),
    }


def measure_products(model, problem):
    """Measures long multiplication with a model of `multiply_add`.

    Args:
        model: The model.
        problem: `AnswerProblem` of its run.

    Returns:
        Dict from kinds of pairs of numbers to dicts from numbers of digits to
        the shares of right products.
    """
    found = {kind: {} for kind in TERMS_OF_KIND}
    for digits in FLAGS.factors:
        kinds = [kind for kind in found for _ in range(FLAGS.products)]
        rng = np.random.default_rng(int(digits))
        pairs = [TERMS_OF_KIND[kind](rng, int(digits)) for kind in kinds]
        products = multiply(
            pairs, lambda problems: write_results(model, problem, problems)
        )
        right = [
            product == number * factor
            for product, (number, factor) in zip(products, pairs, strict=True)
        ]
        for kind, by_length in found.items():
            of_kind = [
                is_right
                for name, is_right in zip(kinds, right, strict=True)
                if name == kind
            ]
            by_length[digits] = sum(of_kind) / len(of_kind)
    return found


def multiply(pairs, write):
    """Multiplies by long multiplication, a digit of the factor at a time.

    It begins with 0. A step adds the number times the next digit of the factor,
    the last digit first. The last digit of the result is one of the product;
    the others are what the next step adds to. So all steps are equally long.

    Args:
        pairs: List of pairs of int, numbers and factors.
        write: Function from a list of problems of `MultiplyAdd`, one for each
            pair, to their results.

    Returns:
        List of int, the products.
    """
    sums, products = [0] * len(pairs), [0] * len(pairs)
    most = max(len(str(factor)) for _, factor in pairs)
    for place in range(most):
        results = write(
            [
                (added, factor // 10**place % 10, number)
                for added, (number, factor) in zip(sums, pairs, strict=True)
            ]
        )
        for turn, result in enumerate(results):
            sums[turn], digit = divmod(result, 10)
            products[turn] += digit * 10**place
    return [
        product + rest * 10**most
        for product, rest in zip(products, sums, strict=True)
    ]


def write_results(model, problem, problems):
    """Returns the results that a model writes, other words as 0.

    Args:
        model: The model.
        problem: `AnswerProblem` of `multiply_add`.
        problems: List of its problems.

    Returns:
        List of int, each with one digit more than the longest number.
    """
    task, vocabulary = problem.task, problem.vocabulary
    digits = max(len(str(number)) for _, _, number in problems)
    width = len(task.write_prompt(task.longest((digits,))).split())
    prompts = [vocabulary.tokenize(task.write_prompt(p)) for p in problems]
    answers = model.generate(
        {
            "token_ids": np.array(
                [[*ids, *[0] * (width - len(ids))] for ids in prompts], np.int32
            ),
            "lengths": np.array([len(ids) for ids in prompts], np.int32),
        },
        digits + 1,
        end_token=problem.end_token,
    )
    results = []
    for ids, asked in zip(np.asarray(answers).tolist(), problems, strict=True):
        count = len(task.respond(asked))
        words = vocabulary.detokenize(ids)[:count]
        known = [word[-1] if word in COLUMNS else "0" for word in words]
        results.append(int("".join(reversed(known)) or "0"))
    return results


def main(argv):
    """Trains what is missing, and reports."""
    del argv
    for row in report("long_multiplication", list(list_rows()), measure):
        print(row["seed"], row["exact_match_by_length"], row["products"])


if __name__ == "__main__":
    app.run(main)
