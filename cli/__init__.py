"""The command line of proxmo, imported as `proxmo_cli`: parse, call the library, print."""
