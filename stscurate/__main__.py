"""`python -m stscurate` is the command `stscurate`."""

from stscurate.cli import main

if __name__ == "__main__":
    main()
