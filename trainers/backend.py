"""What the backend that Keras is set to brings to the loop."""

import keras

if keras.backend.backend() == "jax":
    from trainers.jax_training import (
        LengthEvaluation,
        TrainingStep,
        make_strategy,
    )
else:
    from trainers.length_evaluation import LengthEvaluation
    from trainers.loop import TrainingStep
    from trainers.strategies import make_strategy

__all__ = ["LengthEvaluation", "TrainingStep", "make_strategy"]
