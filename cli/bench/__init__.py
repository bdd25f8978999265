"""`proxmo bench`: speed, as ratios measured side by side in one run.

`commands` has the command line and the tables. Each other module measures one part; it is imported
when its command runs, and nothing outside this package imports it.
"""
