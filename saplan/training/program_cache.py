"""Compiled programs, kept for the next process in the user's cache directory.

Compiling an evaluation takes as long as the evaluation. JAX can keep what it compiled, in files that are code: only
the user may write to their directory. A directory that the user has set for JAX itself is left as it is.
"""

import os
import stat
from pathlib import Path
from typing import Any, cast

import jax

SETTING = "SAPLAN_PROGRAM_CACHE"
"""Variable of the environment: `off`, or another directory."""
MOST_BYTES = 500_000_000
"""Room for programs; beyond it the oldest are removed."""
MAPPINGS, MANY = Path("/proc/self/maps"), 30_000
"""The memory mappings of this process, and how many of them are too many: Linux allows 65,530."""


def forget_old_programs() -> None:
    """Forgets the programs that this process has compiled if they take too many memory mappings.

    Each takes several. Without this the compiler crashes in a long sweep over variants.
    """
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MANY:
        jax.clear_caches()


def keep_programs() -> Path | None:
    """Keep compiled programs from now on, and return where; None if they are not kept."""
    if cast(Any, jax.config).jax_compilation_cache_dir:
        return None
    directory = cache_directory()
    if directory is None or not _is_ours(directory):
        return None
    _make_room(directory)
    jax.config.update("jax_compilation_cache_dir", str(directory))
    # Most programs of an evaluation are small and compiled in less than a second, but there are many.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", 0)
    return directory


def cache_directory() -> Path | None:
    """The directory of compiled programs; None if the setting turns it off."""
    setting = os.environ.get(SETTING, "").strip()
    if setting.lower() in ("off", "0", "no"):
        return None
    if setting:
        return Path(setting)
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base else Path.home() / ".cache") / "saplan" / "programs"


def _is_ours(directory: Path) -> bool:
    """Whether the directory exists or could be made, belongs to the user, and only the user can use it."""
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = directory.lstat()
    except OSError:  # evaluation works without a home directory that can be written to
        return False
    if os.name == "nt":
        return stat.S_ISDIR(found.st_mode)
    own = found.st_uid == os.getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return stat.S_ISDIR(found.st_mode) and own and os.access(directory, os.W_OK)


def _make_room(directory: Path, most: int = MOST_BYTES) -> None:
    """Remove the files that were not used for longest until the rest has room."""
    files = []
    for path in directory.iterdir():
        try:
            found = path.lstat()
        except FileNotFoundError:  # another process is making room as well
            continue
        if stat.S_ISREG(found.st_mode):
            files.append((max(found.st_atime, found.st_mtime), found.st_size, path))
    used = sum(size for _, size, _ in files)
    for _, size, path in sorted(files):
        if used <= most:
            break
        path.unlink(missing_ok=True)
        used -= size
