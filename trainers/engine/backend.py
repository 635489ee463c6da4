"""What the backend that Keras is set to brings to a run."""

import keras

if keras.backend.backend() == "jax":
    from trainers.cluster.jax_strategy import make_strategy
    from trainers.engine.jax_training import LengthEvaluation, TrainingStep
else:
    from trainers.cluster.strategies import make_strategy
    from trainers.engine.evaluation import LengthEvaluation
    from trainers.engine.loop import TrainingStep

__all__ = ["LengthEvaluation", "TrainingStep", "make_strategy"]
