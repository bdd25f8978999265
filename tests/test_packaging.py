"""The distributions: a wheel, an sdist and a checkout install the same packages."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import proxmo
import proxmo_envs

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

# Directory in the checkout -> import name.
IMPORT_NAMES = {
    "proxmo": "proxmo",
    "proxmo_envs": "proxmo_envs",
    "webshop_server": "webshop_server",
    "cli": "proxmo_cli",
}
# What an installation holds besides modules: presets, examples, pages.
SUFFIXES = {".py", ".toml", ".txt", ".csv", ".html", ".css", ".svg"}
EXTRAS = {
    "cpu",
    "gpu",
    "vllm",
    "api",
    "embed",
    "lora",
    "trl",
    "webshop",
    "test",
    "dev",
}
BUILD = (
    "import sys; from setuptools import build_meta; getattr(build_meta, sys.argv[1])(sys.argv[2])"
)


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Runs a command outside the checkout and returns what it printed."""
    result = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def imported_from(cwd: Path, **environment: str) -> list[Path]:
    """The files that Python imports the packages from."""
    code = (
        "import proxmo, proxmo_envs, webshop_server, proxmo_cli.main as m\n"
        "for module in (proxmo, proxmo_envs, webshop_server, m): print(module.__file__)"
    )
    lines = run(sys.executable, "-c", code, cwd=cwd, **environment).splitlines()
    return [Path(line) for line in lines]


def source_files(repository: Path) -> set[str]:
    """Every file that belongs into an installation, by its path there."""
    found = set()
    for directory, name in IMPORT_NAMES.items():
        root = repository / directory
        for path in root.rglob("*"):
            if path.suffix in SUFFIXES or path.name == "py.typed":
                found.add(f"{name}/{path.relative_to(root).as_posix()}")
    return found


def requirements(project: dict[str, object], extra: str) -> list[Requirement]:
    """The direct requirements of `proxmo[extra]`, of itself and of the extras it names."""
    found = [Requirement(text) for text in project["dependencies"]]
    for text in project["optional-dependencies"][extra]:
        requirement = Requirement(text)
        if requirement.name == "proxmo":
            for inner in requirement.extras:
                found += requirements(project, inner)
        else:
            found.append(requirement)
    return found


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, object]:
    """The [project] table of pyproject.toml."""
    return tomllib.loads((repository / "pyproject.toml").read_text())["project"]


@pytest.fixture(scope="module")
def wheel(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from the unpacked sdist of a copy of the checkout."""
    work = tmp_path_factory.mktemp("build")
    checkout = work / "checkout"
    checkout.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(repository / name, checkout)
    for directory in IMPORT_NAMES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(repository / directory, checkout / directory, ignore=ignored)
    run(sys.executable, "-c", BUILD, "build_sdist", work, cwd=checkout)
    (sdist,) = work.glob("proxmo-*.tar.gz")
    shutil.unpack_archive(sdist, work / "sdist", filter="data")
    (unpacked,) = (work / "sdist").iterdir()
    run(sys.executable, "-c", BUILD, "build_wheel", work, cwd=unpacked)
    (path,) = work.glob("proxmo-*.whl")
    return path


def test_the_checkout_is_installed_under_its_import_names_from_any_directory(tmp_path):
    assert len(imported_from(tmp_path)) == len(IMPORT_NAMES)


def test_a_wheel_built_from_the_sdist_holds_every_module_preset_and_type_marker(wheel, repository):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert names == source_files(repository)
    assert any(name.startswith("proxmo/presets/") for name in names)


def test_the_installed_wheel_runs_without_the_checkout(wheel, tmp_path):
    site = tmp_path / "site"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, "--target", site, wheel, cwd=tmp_path)
    files = imported_from(tmp_path, PYTHONPATH=str(site))
    assert all(path.is_relative_to(site) for path in files)
    usage = run(site / "bin" / "proxmo", "--help", cwd=tmp_path, PYTHONPATH=str(site))
    assert "train" in usage


def test_the_packages_carry_the_version_of_the_distribution(project):
    assert proxmo.__version__ == proxmo_envs.__version__ == project["version"]


def test_every_promised_extra_is_declared(project):
    assert set(project["optional-dependencies"]) >= EXTRAS


@pytest.mark.parametrize(("extra", "distribution"), [("cpu", "faiss-cpu"), ("gpu", "faiss-gpu")])
def test_faiss_comes_from_exactly_one_extra_of_its_kind(project, extra, distribution):
    core = {Requirement(text).name for text in project["dependencies"]}
    assert not core & {"faiss-cpu", "faiss-gpu"}, "the two builds share one module name"
    assert [Requirement(text).name for text in project["optional-dependencies"][extra]] == [
        distribution
    ]


def test_the_constraints_pin_one_allowed_version_of_every_direct_requirement(repository, project):
    lines = (repository / "constraints.txt").read_text().splitlines()
    pins = {}
    for line in lines:
        if line and not line.startswith("#"):
            pin = Requirement(line)
            assert canonicalize_name(pin.name) not in pins, f"{pin.name} is pinned twice"
            pins[canonicalize_name(pin.name)] = next(iter(pin.specifier)).version
    tested = {**default_environment(), "python_version": "3.11", "python_full_version": "3.11.7"}
    for requirement in requirements(project, "cpu") + requirements(project, "dev"):
        if requirement.marker is None or requirement.marker.evaluate(tested):
            version = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{requirement} but {version} is pinned"
