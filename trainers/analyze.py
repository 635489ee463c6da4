"""Shows where a trained model looks, and how longer sequences differ for it.

    python -m trainers.analyze RUN
    python -m trainers.analyze RUN OTHER --length=40
    python -m trainers.analyze RUN --evaluation=even --examples=8
    python -m trainers.analyze RUN --matrices=40,100 --activations=40,100

RUN and OTHER are working directories of runs, or checkpoints. For each layer of
self-attention, RUN/attention.json has the mean distance that each head attends
to, in tokens, and with OTHER, which reads the same tokens, the Jensen-Shannon
divergence between each of its heads and each head of RUN. Both need weights
that sum to 1, which those of GeometricAttention do not.

`--matrices` draws how strongly each token attends to each other one, the
maximum over heads, in the first of the sequences of each length.
`--activations` draws what each block returns for the tokens of longer
sequences, in the plane of the two principal components of the longest trained
length, and measures which share lies outside the trained region, further from
all trained ones than 99% of these are from each other. The pictures and their
arrays are RUN/attention_matrices.png and .npz, and RUN/activations.png and
.npz; the shares are in RUN/activations.json.

For a run trained on images, RUN/images.png shows test images of every size, as
the model reads them, with the attention of the query that finds the class: the
mean over heads and layers of the decoder's attention to the pixels or, for a
model with only an encoder, of the last block's attention, averaged over all its
queries. The title of an image is its class and, if another one is found, that
one.
"""

import numpy as np

from trainers.analyses.activations import write_activations
from trainers.analyses.attention import UnsuitableError, write_attention
from trainers.analyses.images import draw
from trainers.analyses.loaded import load
from trainers.analyses.matrices import write_matrices
from trainers.analyses.options import AnalyzeConfig
from trainers.errors import ConfigError
from trainers.options.command import run


def main(config, *texts):
    """Writes what is found out about a model, and draws it."""
    if len(texts) > 2:
        raise ConfigError(f"expected RUN or RUN OTHER; got {' '.join(texts)}.")
    first, *further = (load(config, text) for text in texts)
    for name in ("matrices", "activations"):
        first.check_lengths(f"--{name}", config.parse(name))
    shortest = first.problem.lengths[0]
    blank = np.zeros((1, first.problem.tokens(shortest)))
    has_images = first.problem.lay_out(blank, shortest) is not None
    if has_images:
        draw(first, config.examples)
    try:
        write_attention(config, [first, *further])
    except UnsuitableError as error:
        if not (has_images or config.matrices or config.activations):
            raise
        print(f"no attention.json: {error}", flush=True)
    if config.matrices:
        write_matrices(first, config.parse("matrices"), config.examples)
    if config.activations:
        write_activations(first, config.parse("activations"), config.examples)


if __name__ == "__main__":
    run(AnalyzeConfig, {}, main, operands="RUN...")
