"""The demonstration: a small job site and a workspace, so that the job search can be seen
without the internet.
"""

from __future__ import annotations
