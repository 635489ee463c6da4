"""A worker that tests can have without a second process."""

import numpy as np
from keras import tree

from trainers.devices.strategy import Strategy


class SecondWorker(Strategy):
    """The second of two workers.

    The first one may have other arrays, or an answer of yes to all questions.
    """

    num_replicas = 2
    devices = ("cpu:0",)
    several_workers = True
    is_chief = False

    def __init__(self, differs=False, agrees=False):
        self.differs = differs
        self.agrees = agrees

    def scope(self):
        raise NotImplementedError

    def from_chief(self, values):
        return tree.map_structure(
            lambda value: np.asarray(value) + self.differs, values
        )

    def on_any_worker(self, flag):
        return bool(flag) or self.agrees

    def means_lost_worker(self, error):
        return isinstance(error, OSError)
