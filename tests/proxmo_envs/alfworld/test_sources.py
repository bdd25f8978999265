"""`data=`: directories, packed files, single files and generated games."""

from __future__ import annotations

import copy
import io
import time
import zipfile
from collections import Counter
from pathlib import Path

import pytest

import proxmo_envs
from proxmo_envs.alfworld.games import GAME_FILE, GameTexts
from proxmo_envs.alfworld.generator import SPLIT_SIZES, generate
from proxmo_envs.alfworld.official import SPLITS, OfficialDirectory, pack
from proxmo_envs.alfworld.sources import DATA_VARIABLE, load_game_file, open_source
from proxmo_envs.errors import (
    DataNotFoundError,
    GameFileError,
    InvalidOptionError,
    ProxmoEnvError,
    UnknownTaskError,
)
from tests.proxmo_envs.alfworld.reference import pack_rows, read_rows
from tests.proxmo_envs.alfworld.small import (
    data_directory,
    game_file_text,
    kitchen,
    problem_text,
    write_game,
)

FIRST = "train/pick_and_place_simple-Mug-None-Cabinet-1/trial_1"
SECOND = "train/pick_and_place_simple-Mug-None-Cabinet-1/trial_2"
SEEN = "valid_seen/pick_and_place_simple-Mug-None-Cabinet-1/trial_1"


def archive_of() -> bytes:
    """A .zip archive without the name of our format."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        archive.writestr("train", "{}")
    return content.getvalue()


@pytest.fixture(autouse=True)
def no_data_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(DATA_VARIABLE, raising=False)


@pytest.fixture(params=["directory", "parent", "packed"])
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The same three playable games in every form that holds a data set."""
    root = data_directory(tmp_path / "data" / "json_2.1.1")
    if request.param == "packed":
        pack(root, tmp_path / "games.packed")
        return tmp_path / "games.packed"
    return root if request.param == "directory" else root.parent


def test_every_form_lists_the_playable_games_in_the_order_of_their_ids(data: Path) -> None:
    source = open_source(data)
    assert source.ids("train") == (FIRST, SECOND)
    assert source.ids("valid_seen") == (SEEN,)


def test_every_form_gives_the_same_games_with_the_same_hashes(data: Path) -> None:
    source = open_source(str(data))
    game = source.game(FIRST)
    assert (game.task_id, game.split, game.grammar) == (FIRST, "train", "move")
    assert game.goal == kitchen().goal and game.can_contain == kitchen().can_contain
    assert set(game.items) == set(kitchen().items)
    assert set(game.receptacles) == set(kitchen().receptacles)
    texts = GameTexts(problem_text(kitchen()), kitchen().task, "move")
    assert source.content_hash(SEEN) == texts.content_hash


def test_the_manifest_of_every_form_names_the_grammar_in_force(data: Path) -> None:
    def grammar(**kwargs: str) -> object:
        return proxmo_envs.task_set("ALFWorld-v0", "train", str(data), **kwargs).manifest()

    told = grammar()
    assert isinstance(told, dict) and (told["grammar"], told["tasks"]) == ("move", 2)
    overridden = grammar(grammar="put")
    assert isinstance(overridden, dict) and overridden["grammar"] == "put"
    assert overridden["manifest_hash"] != told["manifest_hash"]


def test_a_split_of_both_releases_names_both_grammars(tmp_path: Path) -> None:
    for grammar in ("move", "put"):
        task_id = f"train/pick_and_place_simple-Mug-None-Cabinet-1/trial_{grammar}"
        write_game(tmp_path, kitchen(task_id=task_id, grammar=grammar))
    tasks = proxmo_envs.task_set("ALFWorld-v0", "train", str(tmp_path))
    assert tasks.manifest()["grammar"] == "move+put"
    assert open_source("generated").grammar("generated/train/tiny/000000") == "move"


@pytest.mark.parametrize("task_id", ["train/nothing", "moon/x", "", "train/../train", "x" * 10_000])
def test_every_form_refuses_unknown_tasks(data: Path, task_id: str) -> None:
    with pytest.raises(UnknownTaskError) as caught:
        open_source(data).game(task_id)
    assert len(str(caught.value)) < 1200


def test_every_form_names_the_splits_it_has(data: Path) -> None:
    with pytest.raises(InvalidOptionError, match="valid_seen"):
        open_source(data).ids("valid")


def test_a_source_is_opened_once_and_shared_by_copies(data: Path) -> None:
    source = open_source(data)
    assert open_source(str(data)) is source
    assert copy.deepcopy(source) is source


def test_what_a_directory_leaves_out_is_counted_with_its_reason(tmp_path: Path) -> None:
    assert dict(OfficialDirectory(data_directory(tmp_path)).listing("train").left_out) == {
        "marked unsolvable": 1,
        "movable receptacle": 1,
        "no game file": 1,
        "not marked as solvable or not": 1,
        "sliced object": 1,
        "truncated game file": 1,
    }


def test_a_single_game_file_is_the_only_task_of_every_split(tmp_path: Path) -> None:
    path = write_game(tmp_path, kitchen(task_id=SEEN))
    source = open_source(path)
    assert source.ids("train") == source.ids("valid_seen") == (SEEN,)
    assert source.game(SEEN).split == "valid_seen"
    with pytest.raises(UnknownTaskError, match="trial_1"):
        source.game("trial_1")


def test_the_data_variable_is_taken_where_nothing_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(DATA_VARIABLE, str(data_directory(tmp_path)))
    assert open_source(None).ids("valid_seen") == (SEEN,)
    generated = open_source("generated").ids("valid_seen")
    assert generated[0] == "generated/valid_seen/default/000000"
    assert open_source(None, "tiny").ids("train")[7] == "generated/train/tiny/000007"
    monkeypatch.setenv(DATA_VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(DataNotFoundError, match=r"nowhere.*\$ALFWORLD_DATA"):
        open_source(None)


def test_generated_games_are_listed_without_making_them_and_made_by_id() -> None:
    source = open_source(None)
    for split, size in SPLIT_SIZES.items():
        assert len(source.ids(split)) == size
    assert source.ids("train") == tuple(sorted(source.ids("train")))
    assert source.game("generated/valid_seen/tiny/000004") == generate("valid_seen", 4, "tiny")
    assert source.game("generated/train/tiny/000004").task_id == "generated/train/tiny/000004"


@pytest.mark.parametrize(
    "task_id",
    [
        "",
        "generated",
        "generated/train/tiny",
        "generated/moon/tiny/000001",
        "generated/train/huge/000001",
        "generated/train/tiny/1",
        "generated/train/tiny/-00001",
        "generated/train/tiny/00000²",
        "generated/train/tiny/000001/..",
    ],
)
def test_strange_ids_of_generated_games_are_refused(task_id: str) -> None:
    with pytest.raises(UnknownTaskError, match="generated/SPLIT/DIFFICULTY/NUMBER"):
        open_source(None).game(task_id)


@pytest.mark.parametrize(
    ("data", "difficulty", "complaint"),
    [
        ("/no/such/place", None, "official data directory"),
        ("\0", None, "null byte"),
        ("x" * 5000, None, "official data directory"),
        (None, "tinny", "did you mean tiny"),
        ("/no/such/place", "tiny", "leave one of them out"),
        ("folder", None, "not an ALFWorld data directory"),
        ("file", None, "not a game file"),
    ],
)
def test_bad_data_arguments_are_one_clear_error(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    data: str | None,
    difficulty: str | None,
    complaint: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_bytes(b"\x00\xff")
    with pytest.raises(ProxmoEnvError, match=complaint) as caught:
        open_source(data, difficulty)
    assert len(str(caught.value)) < 600


def test_a_directory_plays_only_files_inside_it(tmp_path: Path) -> None:
    inside = data_directory(tmp_path / "data")
    outside = write_game(tmp_path / "other", kitchen())
    (inside / "link").symlink_to(outside)
    source = open_source(inside)
    assert load_game_file(f"{FIRST}/{GAME_FILE}", source).task_id == FIRST
    for path in (outside, f"../other/{kitchen().task_id}/{GAME_FILE}", "link"):
        with pytest.raises(InvalidOptionError, match="outside the data directory"):
            load_game_file(path, source)
    assert load_game_file(outside, open_source("generated")).task_id == kitchen().task_id


@pytest.mark.parametrize("path", ["nothing", "\0", "x" * 5000, ""])
def test_a_game_file_that_is_not_there_is_one_clear_error(path: str) -> None:
    with pytest.raises(ProxmoEnvError, match="game"):
        load_game_file(path, open_source("generated"))


@pytest.mark.parametrize("kept", [30, 300, -5])
def test_a_truncated_packed_file_is_one_clear_error(tmp_path: Path, kept: int) -> None:
    path = tmp_path / "games.packed"
    pack(data_directory(tmp_path / "data"), path)
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(GameFileError, match="proxmo data alfworld --from DATA --out FILE"):
        open_source(path)


@pytest.mark.parametrize("offset", [60, 100, 200])
def test_a_packed_file_with_a_wrong_byte_is_one_clear_error(tmp_path: Path, offset: int) -> None:
    path = tmp_path / "games.packed"
    pack(data_directory(tmp_path / "data"), path)
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(GameFileError, match="is damaged: split 'train'"):
        open_source(path).ids("train")


@pytest.mark.parametrize("content", [b"proxmo-alfworld-games 1\n{}\n", archive_of()])
def test_a_packed_file_of_another_format_is_one_clear_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "games.packed").write_bytes(content)
    with pytest.raises(GameFileError, match="write it again by `proxmo data alfworld"):
        open_source(tmp_path / "games.packed")


def test_a_game_file_that_breaks_later_is_one_clear_error(tmp_path: Path) -> None:
    source = open_source(data_directory(tmp_path))
    assert FIRST in source.ids("train")
    (tmp_path / FIRST / GAME_FILE).write_text(game_file_text(kitchen())[:40])
    with pytest.raises(GameFileError, match="not a game file"):
        source.game(FIRST)


def test_only_data_directories_and_archives_are_packed(tmp_path: Path) -> None:
    game = write_game(tmp_path, kitchen(task_id=SEEN))
    with pytest.raises(GameFileError, match="neither an official data directory nor"):
        pack(game, tmp_path / "games.packed")


def test_a_data_set_without_a_playable_game_is_refused_with_the_reasons(tmp_path: Path) -> None:
    write_game(tmp_path, kitchen(task_id=SEEN), solvable=False)
    with pytest.raises(InvalidOptionError, match="no playable game.*'marked unsolvable': 1"):
        pack(tmp_path, tmp_path / "games.packed")
    assert not (tmp_path / "games.packed").exists()


def test_packing_tells_what_was_packed_and_what_was_left_out(tmp_path: Path) -> None:
    data = data_directory(tmp_path / "data")
    content = game_file_text(kitchen()).replace("(:goal", "(:aim")
    (data / SECOND / GAME_FILE).write_text(content)
    listings = pack(data, tmp_path / "games.packed")
    assert listings["train"].ids == (FIRST,) and listings["valid_seen"].ids == (SEEN,)
    assert dict(listings["train"].left_out)["unreadable game file"] == 1
    assert dict(listings["train"].left_out)["marked unsolvable"] == 1
    assert open_source(tmp_path / "games.packed").ids("train") == (FIRST,)


@pytest.mark.slow
def test_the_official_games_are_counted_and_packed_as_published(
    shared: Path, tmp_path: Path
) -> None:
    """The paper publishes these counts."""
    path = pack_rows(read_rows(shared, SPLITS), tmp_path / "games.packed")
    assert path.stat().st_size < 4_000_000
    start = time.process_time()
    source = open_source(path)
    counts = {split: len(source.ids(split)) for split in SPLITS}
    assert time.process_time() - start < 1.0
    assert counts == {"train": 3553, "valid_seen": 140, "valid_unseen": 134}
    types = Counter(source.game(i).goal.task_type for split in SPLITS for i in source.ids(split))
    assert types == {
        "pick_and_place_simple": 849,
        "look_at_obj_in_light": 339,
        "pick_clean_then_place_in_recep": 708,
        "pick_heat_then_place_in_recep": 498,
        "pick_cool_then_place_in_recep": 579,
        "pick_two_obj_and_place": 854,
    }


def test_real_game_folders_and_the_packed_file_hold_the_same_games(
    shared: Path, official_games: Path
) -> None:
    folders = open_source(shared / "alfworld" / "games")
    packed = open_source(official_games)
    ids = folders.ids("valid_unseen")
    assert set(ids) < set(packed.ids("valid_unseen")) and len(ids) == 12
    for task_id in ids:
        assert folders.content_hash(task_id) == packed.content_hash(task_id)
        assert folders.game(task_id) == packed.game(task_id)
