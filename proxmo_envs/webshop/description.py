"""The description of WebShop-v0: its splits, panels and the settings of its embedded model."""

from __future__ import annotations

from proxmo_envs.description import EmbeddedModel, EnvDescription, PanelFamily, PublishedPanel

DESCRIPTION = EnvDescription(
    id="WebShop-v0",
    splits=("train", "validation", "test"),
    eval_split="test",
    default_data="bundled",
    # Pages are longer than rooms.
    max_prompt_tokens=4096,
    examples="proxmo_envs.webshop:examples.txt",
    success_label="Succ.",
    score_label="Score",
    panels={
        "webshop-test-500": PublishedPanel(
            ("test",),
            500,
            needs="the original WebShop data",
            kwargs={"goals": "human", "profile": "original"},
        )
    },
    panel_families={"webshop-bundled": PanelFamily("bundled", "test", ("webshop-bundled-400",))},
    embedded=EmbeddedModel(
        preset="tiny-webshop",
        vocabulary=852,
        # Actions are words of the task in brackets: " red" becomes "[red". A model that has to find
        # out which tokens are the same word needs twice the time to learn to copy them.
        # The demonstrator errs so that reinforcement finds choices to unlearn. After a faultless
        # one, the errors left are ids copied wrongly, and 40 iterations mended few of them (success
        # 60.0 to 69.1 %).
        settings={"games": 3000, "noise": 0.4, "imitate_slips": True, "kindred_words": True},
        sources=("webshop_server",),
    ),
)
