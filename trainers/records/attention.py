"""What attention.json says of one run, or of two."""

import numpy as np

from keras_lengen.analysis import attention_distance, attention_divergence


def describe_attention(layers, queries, other_layers=None):
    """Describes what the heads of each layer attend to.

    Args:
        layers: Dict from names of layers to weights `(B, H, T, T)`.
        queries: bool `(B, T)`. Queries that count.
        other_layers: The same of another model, with as many layers; `None`:
            there is none.

    Returns:
        List of dicts, one for each layer: its `"layer"`, a name; `"distance"`,
        a number for each head, in tokens; and with `other_layers`
        `"divergence"`, rows of numbers in nats, one for each pair of heads,
        with their `"least_divergence"` and their `"mean_divergence"`.

    Raises:
        ValueError: If weights are not probabilities, or those of the other
            model are of other tokens.
    """
    others = list((other_layers or {}).values())
    described = []
    for number, (name, weights) in enumerate(layers.items()):
        distance = attention_distance(weights, queries=queries)
        found = {"layer": name, "distance": distance.round(4).tolist()}
        if others:
            pairs = attention_divergence(
                weights, others[number], queries=queries
            )
            found |= {
                "least_divergence": round(float(np.min(pairs)), 6),
                "mean_divergence": round(float(np.mean(pairs)), 6),
                "divergence": pairs.round(6).tolist(),
            }
        described.append(found)
    return described
