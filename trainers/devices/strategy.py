"""What a trainer asks of a strategy, whichever backend computes."""

import abc
import glob

NO_TPU = (
    "--strategy=tpu found no TPU: this machine has neither /dev/accel* nor "
    "/dev/vfio/*. Run it on a TPU VM; TensorFlow also takes the name or the "
    "address of a TPU elsewhere by --tpu."
)


class Strategy(abc.ABC):
    """The devices that share every batch, of one process or of several.

    Attributes:
        num_replicas: int. Number of replicas of the model, over all processes;
            each computes an equal share of a batch.
        several_workers: bool. Whether other processes train with this one.
        is_chief: bool. Whether this process writes the files of the run.
    """

    num_replicas: int
    several_workers: bool
    is_chief: bool

    @property
    @abc.abstractmethod
    def devices(self):
        """Tuple of str, the names of this process' devices."""

    @abc.abstractmethod
    def scope(self):
        """Returns a context manager that puts new variables on all devices."""

    @abc.abstractmethod
    def from_chief(self, values):
        """Returns the first worker's arrays, on every worker.

        Args:
            values: Structure of arrays, of equal shapes on all workers.
        """

    @abc.abstractmethod
    def on_any_worker(self, flag):
        """Returns whether a flag, a bool, is set on at least one worker."""

    @abc.abstractmethod
    def means_lost_worker(self, error):
        """Returns whether an exception says that another worker is gone."""


def find_local_tpus():
    """Returns the device files of this machine's TPU chips."""
    return glob.glob("/dev/accel*") + glob.glob("/dev/vfio/[0-9]*")
