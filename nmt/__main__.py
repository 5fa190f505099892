"""Runs the command line: python -m nmt."""

from nmt.cli import main

main()
