"""enwik8 as blocks of bytes.

`tfds build datasets/tfds/enwik8` downloads the archive and prepares the data
set; it needs the extra `tfds`. This file imports nothing of its checkout, so
that it works from any folder.
"""

import numpy as np
import tensorflow_datasets as tfds

URL = "http://mattmahoney.net/dc/enwik8.zip"
BLOCK = 10_000
"""Number of bytes of an example. It divides every split of the whole file."""

SPLITS = {"train": (0, 0.9), "validation": (0.9, 0.95), "test": (0.95, 1)}
"""Where each split begins and ends, as fractions of all bytes."""


class Builder(tfds.core.GeneratorBasedBuilder):
    """Builder of enwik8.

    Examples are consecutive blocks in the order of the file: `text`, uint8
    `(BLOCK,)`, except that the last block of a split may be shorter, and
    `start`, int64, the index of its first byte in the file. Read them with
    `tfds.ReadConfig(interleave_cycle_length=1)` to keep the order if a split
    has several shards.
    """

    VERSION = tfds.core.Version("1.0.0")
    RELEASE_NOTES = {"1.0.0": "Initial release."}

    def _info(self):
        return self.dataset_info_from_configs(
            features=tfds.features.FeaturesDict(
                {
                    "text": tfds.features.Tensor(
                        shape=(None,),
                        dtype=np.uint8,
                        encoding=tfds.features.Encoding.BYTES,
                        doc="Bytes, of which characters may be cut.",
                    ),
                    "start": tfds.features.Scalar(
                        dtype=np.int64,
                        doc="Index of the first byte in the file.",
                    ),
                }
            ),
            homepage="http://mattmahoney.net/dc/textdata.html",
            # Blocks stay in the order of the text.
            disable_shuffling=True,
        )

    def _split_generators(self, dl_manager):
        path = dl_manager.download_and_extract(URL) / "enwik8"
        size = path.stat().length
        return {
            name: self._generate_examples(
                path, round(first * size), round(last * size)
            )
            for name, (first, last) in SPLITS.items()
        }

    def _generate_examples(self, path, start, stop):
        with path.open("rb") as file:
            file.seek(start)
            for first in range(start, stop, BLOCK):
                text = file.read(min(BLOCK, stop - first))
                text = np.frombuffer(text, np.uint8)
                yield first, {"text": text, "start": first}
