"""``python -m apex_lessons.extrapolation``: train the models, measure them."""

import sys

from apex_lessons.extrapolation.remake import main

if __name__ == "__main__":
    sys.exit(main())
