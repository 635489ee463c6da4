"""Data sets for the trainers, as `tf.data` pipelines."""

_OF_HUGGING_FACE = (
    *("Dataset", "DatasetDict", "IterableDataset", "IterableDatasetDict"),
    *("load_dataset", "load_dataset_builder", "load_from_disk", "load_metric"),
    *("concatenate_datasets", "interleave_datasets", "list_datasets"),
    *("get_dataset_config_names", "get_dataset_split_names"),
    *("Features", "Value", "ClassLabel", "Sequence", "List", "Column"),
    *("Audio", "Image", "Video", "Array2D", "Translation", "Split"),
    *("DownloadConfig", "DownloadMode", "DatasetBuilder", "BuilderConfig"),
)


def __getattr__(name):
    if name in _OF_HUGGING_FACE:
        raise ImportError(
            f"{name} is of the package `datasets` of Hugging Face, which the "
            "folder `datasets` of this checkout hides: run Python with -P or "
            "from another directory."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
