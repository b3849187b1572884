"""Dagster's side of the project.

What a process that loads definitions has imported lives as long as the process. Python would search it for garbage
hundreds of times while it imports more, and once more at the end: more than a third of the CPU time of loading
them. So it searches rarely, and what is alive at the end is left alone.
"""

import atexit
import gc

gc.freeze()
gc.set_threshold(100_000, 50, 100)
atexit.register(gc.freeze)
