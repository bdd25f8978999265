"""Plays games with the original engine, for `proxmo bench env` and `tests/original/compare.py`.

A script for an interpreter that has `alfworld`, whose planner is under the GPL and so no dependency
of ours. It imports nothing of this package:

    PYTHON original.py < JOBS > EPISODES

Both sides have one JSON object per line. A job has `game_file` and `commands`; an episode has
`[observation, score, done, admissible commands]` and the CPU seconds of the reset and every step.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def play(textworld: Any, wrapper: Any, game_file: str, commands: list[str]) -> dict[str, Any]:
    """Play one game with the modules that `main` imports: the engine and its naming wrapper."""
    infos = textworld.EnvInfos(won=True, admissible_commands=True, feedback=True, score=True)
    start = time.process_time()
    env = textworld.start(game_file, infos, wrappers=[wrapper()])
    state = env.reset()
    seconds = [time.process_time() - start]
    moments = [[state["feedback"], int(state["won"]), state["won"], state["admissible_commands"]]]
    for command in commands:
        start = time.process_time()
        state, score, done = env.step(command)
        seconds.append(time.process_time() - start)
        moments.append([state["feedback"], score, done, state["admissible_commands"]])
    env.close()
    return {"moments": moments, "seconds": seconds}


def main() -> None:
    """Play the jobs on standard input; the prints of the original go to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    import textworld
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler

    for line in sys.stdin:
        job = json.loads(line)
        episode = play(textworld, AlfredDemangler, job["game_file"], job["commands"])
        print(json.dumps(episode), file=answers, flush=True)


if __name__ == "__main__":
    main()
