"""`python -m pnpilot`."""

from .cli import main

main()
