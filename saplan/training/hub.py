"""Runs from the Hugging Face hub. Only the files of a run are fetched; they are validated like any others, and nothing
of them is executed. Needs the extra `hub`.
"""

import functools
import importlib
import re
import tempfile
from pathlib import Path

from saplan.errors import InputError
from saplan.storage.files import read_bytes
from saplan.training.config import ATTRIBUTES
from saplan.training.shipped import MANIFEST

PREFIX = "hf:"
"""Marks the name of a repository, so that a mistyped path is never looked up in a network."""
FILES = (MANIFEST, "agent.safetensors", ATTRIBUTES, "config.json", "metrics.jsonl")
LARGEST = 512 * 2**20


def fetch_run(name: str) -> Path:
    """A directory with the run of a repository, `hf:owner/name` or `hf:owner/name@revision`."""
    found = re.fullmatch(rf"{PREFIX}([\w.-]+/[\w.-]+)(?:@([\w./-]+))?", name)
    if found is None:
        raise InputError(f"write a repository as {PREFIX}owner/name or {PREFIX}owner/name@revision, got {name!r}")
    return Path(_fetched(*found.groups()).name)


@functools.cache
def _fetched(repository: str, revision: str | None) -> "tempfile.TemporaryDirectory[str]":
    """The files of a repository, copied out of the hub's cache, which holds links; removed when the program ends."""
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError:
        raise InputError(f"{PREFIX}{repository} needs huggingface_hub: pip install huggingface_hub") from None
    try:
        snapshot = Path(hub.snapshot_download(repository, revision=revision, allow_patterns=list(FILES)))
    except Exception as error:  # the hub raises errors of many packages
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"cannot fetch {PREFIX}{repository}: {type(error).__name__}: {reason}") from None
    cache, copies = snapshot.parent.parent.resolve(), tempfile.TemporaryDirectory(prefix="saplan-")
    for file in FILES:
        source = (snapshot / file).resolve()
        if not source.is_relative_to(cache):
            raise InputError(f"{PREFIX}{repository}: {file} leads outside its own directory of the hub's cache")
        if source.is_file():
            Path(copies.name, file).write_bytes(read_bytes(source, LARGEST))
    return copies
