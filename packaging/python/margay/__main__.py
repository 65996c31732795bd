"""`python -m margay ARGUMENTS` is the command `margay ARGUMENTS`."""

import os
import sys

from . import command_path

os.execv(command_path(), [command_path(), *sys.argv[1:]])
