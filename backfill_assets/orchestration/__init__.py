"""Dagster's side of the project; it runs in processes of Dagster's alone.

What such a process has imported lives as long as the process. Python searches it for garbage again and
again while it imports more, and once more at the end: a third of the CPU time of loading definitions.
"""

import atexit
import gc

gc.freeze()
atexit.register(gc.freeze)
