"""Nodes by key: an open-addressing hash table in arrays that looks up and inserts whole batches."""

import numpy as np
from jaxtyping import Int64

NO_NODE = -1
SPARSE = 4
"""Least number of slots per key, so that few keys collide."""


class Index:
    """Nodes by their 64-bit keys, numbered in order of insertion. Keys must be well mixed."""

    def __init__(self) -> None:
        """Start empty."""
        self.size = 0
        self._reserve(1024)

    def find(self, keys: Int64[np.ndarray, "m"]) -> Int64[np.ndarray, "m"]:
        """Nodes of keys; NO_NODE where there is none."""
        slot, nodes, asking = keys & self._mask, np.empty(len(keys), np.int64), np.arange(len(keys))
        while len(asking):
            here = slot[asking]
            nodes[asking] = self._node[here]
            asking = asking[(nodes[asking] != NO_NODE) & (self._key[here] != keys[asking])]
            slot[asking] = (slot[asking] + 1) & self._mask
        return nodes

    def intern(self, keys: Int64[np.ndarray, "m"]) -> tuple[Int64[np.ndarray, "m"], Int64[np.ndarray, "new"]]:
        """Nodes of keys, inserting unknown ones; and for every inserted node an index into `keys` that has its key."""
        if SPARSE * (self.size + len(keys)) > len(self._key):
            self._rebuild(SPARSE * (self.size + len(keys)))
        # A key that finds its slot empty writes its own index there. Of several that write at once one wins, and equal
        # keys adopt its number.
        slot, nodes, asking = keys & self._mask, np.empty(len(keys), np.int64), np.arange(len(keys))
        while len(asking):
            here = slot[asking]
            empty = self._node[here] == NO_NODE
            self._node[here[empty]] = self.size + asking[empty]
            nodes[asking] = self._node[here]
            winner = asking[nodes[asking] == self.size + asking]
            self._key[slot[winner]] = keys[winner]
            asking = asking[self._key[here] != keys[asking]]
            slot[asking] = (slot[asking] + 1) & self._mask
        new = np.flatnonzero(nodes == self.size + np.arange(len(keys)))
        number = np.empty(len(keys), np.int64)
        number[new] = self.size + np.arange(len(new))
        self._node[slot[new]] = number[new]
        signed = nodes >= self.size
        nodes[signed] = number[nodes[signed] - self.size]
        self.size += len(new)
        return nodes, new

    def _reserve(self, slots: int) -> None:
        slots = 1 << (slots - 1).bit_length()
        self._mask = np.int64(slots - 1)
        self._key, self._node = np.zeros(slots, np.int64), np.full(slots, NO_NODE)

    def _rebuild(self, slots: int) -> None:
        taken = self._node != NO_NODE
        keys = self._key[taken][np.argsort(self._node[taken])]
        self._reserve(2 * slots)
        self.size = 0
        if len(keys):
            self.intern(keys)
