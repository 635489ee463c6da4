import numpy as np

from keras_lengen.layers import CoPE

QUERY = np.array([[1, 0], [0.5, 1], [1, 1]], "float32")
KEY = np.array([[0, 1], [1, 0], [2, -1]], "float32")
TABLE = np.array([[0.1, 0.2, 0.3], [0.4, -0.5, 0.6]], "float32")


def test_published_numbers():
    encoding = CoPE(num_positions=3)
    encoding.build((1, 3, 1, 2))
    encoding.set_weights([TABLE])
    query, key = QUERY[None, :, None], KEY[None, :, None]
    bias = np.asarray(encoding(query, key, causal=True))[0, 0]
    logits = [[0.15], [-0.104173, -0.049357], [0.9, 0.107428, -0.035809]]
    for i, row in enumerate(logits):
        expected = np.array(row) / np.sqrt(2)
        np.testing.assert_allclose(bias[i, : i + 1], expected, atol=1e-5)
