"""Dagster's side of the project.

What a process that loads definitions has imported lives as long as the process. Python searches it for garbage again
and again while it imports more, and once more at the end: a third of the CPU time of loading them.
"""

import atexit
import gc

gc.freeze()
atexit.register(gc.freeze)
