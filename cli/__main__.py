"""Lets `python -m proxmo_cli` stand in for the script `proxmo`."""

from .main import main

if __name__ == "__main__":  # the processes of --nproc import this, too
    main()
