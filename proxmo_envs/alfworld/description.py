"""What is known of ALFWorld-v0 besides its class."""

from __future__ import annotations

from typing import Any

from proxmo_envs.description import EmbeddedModel, EnvDescription, PanelFamily, PublishedPanel

_OFFICIAL: dict[str, Any] = {"needs": "the official ALFWorld data", "variable": "ALFWORLD_DATA"}

DESCRIPTION = EnvDescription(
    id="ALFWorld-v0",
    splits=("train", "valid_seen", "valid_unseen"),
    eval_split="valid_unseen",
    default_data="generated",
    max_prompt_tokens=2048,
    examples="proxmo_envs.alfworld:examples.txt",
    task_types={
        "Pick": "pick_and_place_simple",
        "Look": "look_at_obj_in_light",
        "Clean": "pick_clean_then_place_in_recep",
        "Heat": "pick_heat_then_place_in_recep",
        "Cool": "pick_cool_then_place_in_recep",
        "Pick2": "pick_two_obj_and_place",
    },
    success_label="All",
    score_label="",
    panels={
        "alfworld-valid-seen": PublishedPanel(
            ("valid_seen",),
            140,
            **_OFFICIAL,
            hash="c128e8930acb04093204f03dabe43bfa511705e68deff8f568ea71495a400138",
        ),
        "alfworld-valid-unseen": PublishedPanel(
            ("valid_unseen",),
            134,
            **_OFFICIAL,
            hash="e2109203a35bbcc3ac2b06f8358e0c68666fc25eb930cc7c70b517cb9e91cb4a",
        ),
        "alfworld-both": PublishedPanel(
            ("valid_seen", "valid_unseen"),
            274,
            **_OFFICIAL,
            hash="20255322ab06754bba05257ae8264d53465c5400eae97e98d123173d9bcdd3cb",
        ),
    },
    panel_families={
        "alfworld-generated": PanelFamily(
            "generated", "valid_unseen", ("alfworld-generated-400", "alfworld-generated-tiny-400")
        )
    },
    embedded=EmbeddedModel(preset="tiny", vocabulary=665),
)
