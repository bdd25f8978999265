"""Names the packages; everything else is in pyproject.toml.

The directory cli/ is imported as `proxmo_cli`, a mapping that pyproject's `packages.find` cannot
combine with discovery.
"""

from setuptools import find_packages, setup

ROOTS = ("proxmo", "proxmo_envs", "webshop_server")

setup(
    packages=[
        *find_packages(include=[pattern for root in ROOTS for pattern in (root, f"{root}.*")]),
        "proxmo_cli",
        *(f"proxmo_cli.{name}" for name in find_packages("cli")),
    ],
    package_dir={"proxmo_cli": "cli"},
)
