"""Positional encodings, which bring the positions of tokens into a model."""

from keras_lengen.checks.arguments import ByName
from keras_lengen.layers.encodings.absolute import AbsoluteEncoding
from keras_lengen.layers.encodings.alibi import ALiBi, RandomizedALiBi
from keras_lengen.layers.encodings.axial_encoding import AxialEncoding
from keras_lengen.layers.encodings.bam import BAM
from keras_lengen.layers.encodings.base import PositionalEncoding
from keras_lengen.layers.encodings.bias import BiasEncoding
from keras_lengen.layers.encodings.cape import CAPE
from keras_lengen.layers.encodings.clipped_bias import ClippedBias
from keras_lengen.layers.encodings.cope import CoPE
from keras_lengen.layers.encodings.dape import DAPE
from keras_lengen.layers.encodings.fire import FIRE, RandomizedFIRE
from keras_lengen.layers.encodings.hard_alibi import HardALiBi
from keras_lengen.layers.encodings.learned_encoding import (
    LearnedEncoding,
    RandomizedLearnedEncoding,
)
from keras_lengen.layers.encodings.llama3_rope import Llama3RoPE
from keras_lengen.layers.encodings.log_kerple import (
    LogKERPLE,
    RandomizedLogKERPLE,
)
from keras_lengen.layers.encodings.long_rope import LongRoPE
from keras_lengen.layers.encodings.nape import NAPE
from keras_lengen.layers.encodings.nope import NoPE
from keras_lengen.layers.encodings.ntk_rope import NTKRoPE
from keras_lengen.layers.encodings.pope import PoPE
from keras_lengen.layers.encodings.power_kerple import (
    PowerKERPLE,
    RandomizedPowerKERPLE,
)
from keras_lengen.layers.encodings.re_rope import ReRoPE
from keras_lengen.layers.encodings.relative_encoding import (
    RandomizedRelativeEncoding,
    RelativeEncoding,
)
from keras_lengen.layers.encodings.rope import RandomizedRoPE, RoPE
from keras_lengen.layers.encodings.rotary import RotaryEncoding
from keras_lengen.layers.encodings.sandwich import (
    RandomizedSandwich,
    Sandwich,
)
from keras_lengen.layers.encodings.selective_rope import SelectiveRoPE
from keras_lengen.layers.encodings.self_extend import SelfExtend
from keras_lengen.layers.encodings.shape import SHAPE
from keras_lengen.layers.encodings.shaw_encoding import ShawEncoding
from keras_lengen.layers.encodings.sinusoidal_encoding import (
    RandomizedSinusoidalEncoding,
    SinusoidalEncoding,
)
from keras_lengen.layers.encodings.string import STRING
from keras_lengen.layers.encodings.t5_bias import T5Bias
from keras_lengen.layers.encodings.warped_rope import WarpedRoPE
from keras_lengen.layers.encodings.xpos import XPos
from keras_lengen.layers.encodings.yarn import RandomizedYaRN, YaRN

_ENCODINGS: dict[str, type[PositionalEncoding]] = {
    "NoPE": NoPE,
    "SinusoidalEncoding": SinusoidalEncoding,
    "LearnedEncoding": LearnedEncoding,
    "RoPE": RoPE,
    "NTKRoPE": NTKRoPE,
    "YaRN": YaRN,
    "Llama3RoPE": Llama3RoPE,
    "LongRoPE": LongRoPE,
    "XPos": XPos,
    "SelfExtend": SelfExtend,
    "ReRoPE": ReRoPE,
    "STRING": STRING,
    "PoPE": PoPE,
    "SelectiveRoPE": SelectiveRoPE,
    "RelativeEncoding": RelativeEncoding,
    "ShawEncoding": ShawEncoding,
    "ALiBi": ALiBi,
    "HardALiBi": HardALiBi,
    "NAPE": NAPE,
    "ClippedBias": ClippedBias,
    "PowerKERPLE": PowerKERPLE,
    "LogKERPLE": LogKERPLE,
    "BAM": BAM,
    "Sandwich": Sandwich,
    "T5Bias": T5Bias,
    "CoPE": CoPE,
    "DAPE": DAPE,
    "FIRE": FIRE,
    "SHAPE": SHAPE,
    "CAPE": CAPE,
    "WarpedRoPE": WarpedRoPE,
    "RandomizedSinusoidalEncoding": RandomizedSinusoidalEncoding,
    "RandomizedLearnedEncoding": RandomizedLearnedEncoding,
    "RandomizedRoPE": RandomizedRoPE,
    "RandomizedYaRN": RandomizedYaRN,
    "RandomizedRelativeEncoding": RandomizedRelativeEncoding,
    "RandomizedALiBi": RandomizedALiBi,
    "RandomizedPowerKERPLE": RandomizedPowerKERPLE,
    "RandomizedLogKERPLE": RandomizedLogKERPLE,
    "RandomizedSandwich": RandomizedSandwich,
    "RandomizedFIRE": RandomizedFIRE,
}

ENCODINGS = ByName("encoding", _ENCODINGS)

# AxialEncoding is not in ENCODINGS because it cannot be built from its name
# alone: it needs two other encodings.
__all__ = [
    "BAM",
    "CAPE",
    "DAPE",
    "FIRE",
    "NAPE",
    "SHAPE",
    "STRING",
    "ALiBi",
    "AbsoluteEncoding",
    "AxialEncoding",
    "BiasEncoding",
    "ClippedBias",
    "CoPE",
    "HardALiBi",
    "LearnedEncoding",
    "Llama3RoPE",
    "LogKERPLE",
    "LongRoPE",
    "NTKRoPE",
    "NoPE",
    "PoPE",
    "PositionalEncoding",
    "PowerKERPLE",
    "RandomizedALiBi",
    "RandomizedFIRE",
    "RandomizedLearnedEncoding",
    "RandomizedLogKERPLE",
    "RandomizedPowerKERPLE",
    "RandomizedRelativeEncoding",
    "RandomizedRoPE",
    "RandomizedSandwich",
    "RandomizedSinusoidalEncoding",
    "RandomizedYaRN",
    "ReRoPE",
    "RelativeEncoding",
    "RoPE",
    "RotaryEncoding",
    "Sandwich",
    "SelectiveRoPE",
    "SelfExtend",
    "ShawEncoding",
    "SinusoidalEncoding",
    "T5Bias",
    "WarpedRoPE",
    "XPos",
    "YaRN",
]
