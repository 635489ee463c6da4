"""The parts of a run that depend on the backend that Keras is set to."""

import keras

if keras.backend.backend() == "jax":
    from trainers.devices.jax_strategy import make_strategy
    from trainers.engine.jax_step import JaxEvaluationStep as EvaluationStep
    from trainers.engine.jax_step import JaxTrainingStep as TrainingStep
else:
    from trainers.devices.tensorflow_strategy import make_strategy
    from trainers.engine.tensorflow_step import (
        TensorFlowEvaluationStep as EvaluationStep,
    )
    from trainers.engine.tensorflow_step import (
        TensorFlowTrainingStep as TrainingStep,
    )

__all__ = ["EvaluationStep", "TrainingStep", "make_strategy"]
