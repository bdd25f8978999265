"""Where the process starts: `proxmo`, or `python -m proxmo_cli`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; a Ctrl-C while it is still imported ends in one line, too."""
    try:
        from .main import main as run
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(3)  # as `failures.INCOMPLETE`, which may not be there yet
    run()


if __name__ == "__main__":  # the processes of --nproc import this, too
    main()
