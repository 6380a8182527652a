"""`python -m runyard` is the command `runyard`."""

import sys

from runyard.cli.main import main

sys.exit(main())
