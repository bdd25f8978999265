"""Displays: progress on a terminal or as lines, results as tables, explanations of credit."""
