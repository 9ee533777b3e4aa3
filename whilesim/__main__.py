"""The command line as a module: ``python -m whilesim``."""

from whilesim.cli import main

if __name__ == "__main__":
    main(prog_name="whilesim")
