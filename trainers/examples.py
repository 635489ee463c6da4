r"""Trains a Transformer on examples of your own, and tests it on longer ones.

    python -m trainers.examples --data=reviews.csv --encoding=ALiBi
    python -m trainers.examples --data=questions.jsonl --input=question \
        --target=answer --tokens=words --train_length=20 --test_lengths=40,80
    python -m trainers.examples --data=my_project.data:read --kind=tags

An example has an input and a target: a label of the whole sequence, an answer
to write, or a list of tags, one for each token. A length stands for all
examples that are at most so long, and longer than the length before it. By
default, the model is trained on the shorter half of the examples.
"""

from keras_lengen.models import TransformerDecoder, TransformerEncoder
from trainers.answers.model import decoder_arguments
from trainers.experiment import Experiment
from trainers.labelled.options import PRESETS, ExamplesConfig
from trainers.labelled.problem import ClassProblem, WrittenAnswer
from trainers.options.layers import model_arguments


def build_model(config):
    """Builds the model of a configuration."""
    examples = config.examples
    size = examples.vocabulary.size
    if examples.kind == "answer":
        return TransformerDecoder(**decoder_arguments(config, size))
    make = TransformerDecoder if config.is_decoder else TransformerEncoder
    return make(
        vocabulary_size=size,
        output_size=len(examples.classes),
        **model_arguments(config),
    )


def make_problem(config):
    """Makes the `Problem` of a configuration."""
    is_answer = config.resolved.kind == "answer"
    return (WrittenAnswer if is_answer else ClassProblem)(config)


EXPERIMENT = Experiment(
    "examples", ExamplesConfig, PRESETS, build_model, make_problem
)

if __name__ == "__main__":
    EXPERIMENT.run()
