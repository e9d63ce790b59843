"""The demonstration: a small job site and a workspace, so that the job search runs without the
internet.
"""

from __future__ import annotations
