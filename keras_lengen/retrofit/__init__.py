"""New positions for models of Keras and KerasHub that already exist.

KerasHub is imported when a backbone is loaded from a file, and only then: the
extra `retrofit` installs it.
"""

from keras_lengen.retrofit.conversion import convert
from keras_lengen.retrofit.families import FAMILIES
from keras_lengen.retrofit.retrofitted import RetrofittedModel
from keras_lengen.retrofit.rope_parameters import (
    from_rope_parameters,
    to_rope_parameters,
)

__all__ = [
    "FAMILIES",
    "RetrofittedModel",
    "convert",
    "from_rope_parameters",
    "to_rope_parameters",
]
