"""A small model of the algorithmic trainer, without a run."""

from keras_lengen.models import TransformerEncoder


def small_model(encoding=None, dropout=0.0):
    return TransformerEncoder(
        vocabulary_size=3,
        output_size=2,
        num_layers=1,
        num_heads=2,
        model_dim=8,
        dropout=dropout,
        encoding=encoding,
    )
