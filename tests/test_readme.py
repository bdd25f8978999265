"""README: what it tells people to type exists, what it shows runs, what it links to is there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from proxmo.credit import method_names

REPOSITORY = Path(__file__).resolve().parent.parent
PAGES = sorted(str(page.relative_to(REPOSITORY)) for page in REPOSITORY.glob("docs/*.md"))
DOCUMENTS = ("README.md", "CONTRIBUTING.md", *PAGES)
# Their first argument is a command again.
GROUPS = ("bench", "data", "webshop")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAG = re.compile(r"(?<!\S)(--?[a-zA-Z][\w-]*)")


def blocks(document: str, language: str) -> list[str]:
    """The fenced code blocks of a document in one language."""
    text = (REPOSITORY / document).read_text()
    return [body for name, body in FENCE.findall(text) if name == language]


def proxmo_commands() -> list[str]:
    """Every `proxmo VERB ...` in the documents' shell blocks and inline code."""
    found = []
    for document in DOCUMENTS:
        inline = re.findall(r"`([^`\n]+)`", FENCE.sub("", (REPOSITORY / document).read_text()))
        for line in "\n".join(blocks(document, "bash")).replace("\\\n", " ").splitlines() + inline:
            for command in re.split(r"&&|\||;", line.split(" #")[0]):
                words = shlex.split(command)
                if len(words) > 1 and Path(words[0]).name == "proxmo":
                    found.append(shlex.join(["proxmo", *words[1:]]))
    return sorted(set(found))


@cache
def help_of(verb: tuple[str, ...]) -> str:
    """What `proxmo VERB --help` prints."""
    code = "from proxmo_cli.main import main; main()"
    command = [sys.executable, "-c", code, *verb, "--help"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, f"{' '.join(verb)}: {result.stderr}"
    return result.stdout


def flags_in(text: str) -> set[str]:
    """The option names in a help text, or in a command."""
    return set(FLAG.findall(text.replace(",", " ")))


def test_readme_shows_the_command_that_trains():
    assert any(
        command.startswith("proxmo train --env ALFWorld-v0") for command in proxmo_commands()
    )


@pytest.mark.parametrize("command", proxmo_commands())
def test_a_command_in_the_documents_exists_with_its_options(command):
    words = shlex.split(command)[1:]
    verb = () if words[0].startswith("-") else tuple(words[: 1 + (words[0] in GROUPS)])
    used = {word.split("=")[0] for word in words if FLAG.fullmatch(word.split("=")[0])}
    assert used <= flags_in(help_of(verb)), f"`{command}` uses an option that {verb} does not have"


@pytest.mark.parametrize("code", blocks("README.md", "python"))
def test_a_python_example_in_readme_runs(code, tmp_path):
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr


def test_the_table_of_methods_names_exactly_the_registered_ones_each_once():
    rows = re.findall(r"^\| (`.*?) \|", (REPOSITORY / "README.md").read_text(), re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    extras = {"cpu", "gpu", "webshop", "lora", "api", "embed", "trl", "vllm", "test", "dev"}
    assert sorted(set(named) - extras) == sorted(method_names())
    assert len(named) == len(set(named))


@pytest.mark.parametrize("document", DOCUMENTS)
def test_local_links_resolve(document):
    text = (REPOSITORY / document).read_text()
    targets = [t for t in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in t]
    here = (REPOSITORY / document).parent
    missing = [t for t in targets if not (here / t.split("#")[0]).exists()]
    assert not missing


@pytest.mark.parametrize("name", ["train", "tests"])
def test_ci_finds_the_command_that_readme_marks_for_it(name):
    script = (REPOSITORY / ".ci" / "run").read_text()
    text = (REPOSITORY / "README.md").read_text()
    assert f"readme_command {name}" in script
    assert re.search(rf"^<!-- ci: {name} -->\n```bash\n[^`]+\n```$", text, re.MULTILINE)


def test_the_index_of_the_documentation_names_every_page():
    index = (REPOSITORY / "docs" / "README.md").read_text(encoding="utf-8")
    pages = {Path(page).name for page in PAGES} - {"README.md"}
    assert set(re.findall(r"\]\((\S+?\.md)\)", index)) == pages
