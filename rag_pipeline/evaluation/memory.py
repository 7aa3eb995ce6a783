"""The memory of this process, for comparison with a budget."""

from __future__ import annotations

import resource
import sys
from pathlib import Path
from typing import Final

_STATM: Final = Path("/proc/self/statm")
_BYTES_PER_MB: Final = 1e6


def read_resident_mb() -> float | None:
    """Return the resident memory of this process in MB (10^6 bytes); None if it is unknown.

    Only Linux tells the present value. Other systems tell only the peak.
    """
    try:
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize() / _BYTES_PER_MB


def read_peak_mb() -> float:
    """Return the highest resident memory of this process so far in MB (10^6 bytes)."""
    unit = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes on macOS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / _BYTES_PER_MB
