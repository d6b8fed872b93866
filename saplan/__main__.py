"""`python -m saplan` is the command line."""

import sys

from saplan.cli import main

sys.exit(main())
