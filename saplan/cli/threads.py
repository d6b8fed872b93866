"""The number of threads that XLA uses on a CPU.

An update of training is a sequence of many small operations. With several threads, handing them from thread to thread
takes longer than computing them at the same time saves: `docs/speed.md` has the measurements.
"""

import os

THREADS = "NPROC"
"""Variable of the environment from which XLA takes the number of its threads when JAX starts."""


def train_in_one_thread() -> None:
    """One thread for XLA on a CPU, unless the environment already says how many; to be called before JAX starts."""
    os.environ.setdefault(THREADS, "1")
