"""``python -m apex_lessons``: the command line."""

import sys

from apex_lessons.cli import main

if __name__ == "__main__":
    sys.exit(main())
