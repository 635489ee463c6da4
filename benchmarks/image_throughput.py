"""Measures how fast images are decoded, and in how much memory.

Makes JPEGs of 256 x 256 pixels, decodes them to 22 x 22 tokens, and reads an
epoch of them. The decoder alone, in one thread, takes turns with that.

    python -m benchmarks.image_throughput
"""

import functools
import io
import pathlib
import statistics
import tempfile
import time

import numpy as np
import tensorflow as tf
from absl import app, flags
from PIL import Image

from benchmarks.measure import DEFINE_count, PeakMemory, write_report
from datasets.images import IMAGES, batches, open_store

FLAGS = flags.FLAGS
DEFINE_count("rounds", 5, "Number of turns of each.")
flags.DEFINE_list("images", ["2000", "20000"], "Numbers of images.")
DEFINE_count("batch_size", 32, "Images of a batch.")
flags.DEFINE_string(
    "output",
    "benchmarks/results/image_throughput.json",
    "File for the report.",
)
SIZE = (22, 22)


def write_images(directory, count):
    """Writes JPEGs in two classes; returns the mean number of their bytes."""
    rng, total = np.random.default_rng(0), 0
    for number in range(count):
        # Neighboring pixels are alike, and no image is another one.
        coarse = rng.integers(0, 256, (32, 32, 3), np.uint8)
        image = Image.fromarray(coarse).resize((256, 256))
        file = io.BytesIO()
        image.save(file, "JPEG", quality=90)
        folder = directory / "train" / str(number % 2)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.jpg").write_bytes(file.getvalue())
        total += file.tell()
    (directory / "val").mkdir()
    return total / count


def read_epoch(source, directory):
    """Decodes all images of a source and reads them as batches of tokens."""
    with tempfile.TemporaryDirectory(dir=directory) as cache:
        store = open_store(source, [SIZE], cache, report=lambda line: None)
        dataset = batches.training_dataset(
            store,
            size_at=lambda step: tf.constant(SIZE),
            batch_size=FLAGS.batch_size,
            seed=0,
            padded_length=SIZE[0] * (SIZE[1] + 1),
            first_step=0,
            last_step=len(store) // FLAGS.batch_size,
        )
        for batch in dataset:
            last = batch["token_ids"]
        return last


def decode_alone(source):
    """Decodes all images of a source in this thread, and nothing else."""
    for item in source.read():
        with Image.open(item.content) as image:
            image.load()


def measure_speeds(source, directory):
    """Measures images per second of the pipeline and of a decoder alone."""
    turns = {
        "pipeline": lambda: read_epoch(source, directory),
        "decoder alone, one thread": lambda: decode_alone(source),
    }
    speeds = {name: [] for name in turns}
    for _ in range(FLAGS.rounds):
        for name, turn in turns.items():
            start = time.perf_counter()
            turn()
            seconds = time.perf_counter() - start
            speeds[name].append(source.count / seconds)
    return speeds


def main(argv):
    """Measures and writes the report."""
    del argv
    memory, speeds = {}, None
    with tempfile.TemporaryDirectory() as directory:
        # What TensorFlow needs once, with too few images to count.
        write_images(pathlib.Path(directory), 2 * FLAGS.batch_size)
        source = IMAGES["folder"].open(directory)["train"]
        read_epoch(source, directory)
    for count in map(int, FLAGS.images):
        with tempfile.TemporaryDirectory() as directory:
            size = write_images(pathlib.Path(directory), count)
            source = IMAGES["folder"].open(directory)["train"]
            peak = PeakMemory().measure_bytes(
                functools.partial(read_epoch, source, directory)
            )
            memory[count] = peak / 2**20
            speeds = speeds or measure_speeds(source, directory)
    for name, values in speeds.items():
        print(f"{name}: {statistics.median(values):,.0f} images/s")
    for count, peak in memory.items():
        print(f"{count:,} images: {peak:.0f} MiB more memory")
    write_report(
        FLAGS.output,
        "benchmarks.image_throughput",
        {
            "bytes_per_image": size,
            "images_per_second": speeds,
            "peak_mebibytes_by_images": memory,
        },
    )


if __name__ == "__main__":
    app.run(main)
