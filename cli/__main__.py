"""Lets `python -m proxmo_cli` stand in for the script `proxmo`."""

from .main import main

main()
