"""The shapes in the signatures are true: the library's tests also pass with every annotation checked at run time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHECKED = ["--jaxtyping-packages=mhalib,typechecker.check"]


def run(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("tests", ["tests/ensembles", "tests/shared/test_estimate.py", "tests/heads/test_mixing.py"])
def test_annotations_hold(tests):
    result = run(*CHECKED, tests, "-k", "not bad and not test_memory")
    assert result.returncode == 0, result.stdout[-3000:]


def test_a_wrong_shape_is_noticed(tmp_path):
    """The control: a call whose argument has one axis too many fails under the checker only."""
    script = tmp_path / "test_wrong.py"
    script.write_text("import numpy as np\nfrom mhalib.estimate import slope\n"
                      "def test_it():\n    slope(np.ones((2, 3)), np.ones(3))\n")
    assert "TypeCheckError" in run(*CHECKED, str(script)).stdout
    assert "ValueError" in run(str(script)).stdout
