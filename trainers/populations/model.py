"""The model of `trainers.algorithmic`, without what needs TensorFlow."""

from keras_lengen.models import TransformerEncoder
from trainers.options.layers import model_arguments

# Ruoss et al., 2023, section 4 and appendix A.
PAPER = {
    "max_position": 2048,
    "num_layers": 5,
    "steps": 2_000_000,
    "train_length": "1-40",
    "test_lengths": "1-500",
    "evaluation_examples": 500,
    "steps_per_loop": 100,
    "checkpoint_every": 10_000,
}
"""The published set-up of one model."""


def build_model(config, task):
    """Builds the model of a configuration for an algorithmic task.

    Args:
        config: `AlgorithmicConfig` or `PopulationConfig`.
        task: `Task` or `JaxTask`.
    """
    return TransformerEncoder(
        # One id more for the empty output tokens.
        vocabulary_size=task.input_vocabulary_size + 1,
        output_size=task.output_vocabulary_size,
        **model_arguments(config),
    )
