"""The two MCP servers of the job search: `python -m tests.e2e.jobservers companies|board [port]`.

The register of companies is spoken to over a pipe, the job board over HTTP.
"""

from __future__ import annotations

import sys
from typing import Any
from urllib.parse import urlsplit

from agentweb.demo.openings import PAGES, list_openings
from tests.support.job_alerts import is_open, rate_company

COMPANIES = {job.company for page in range(1, PAGES + 1) for job in list_openings(page)}
JOBS = {job.path: job for page in range(1, PAGES + 1) for job in list_openings(page)}


def companies() -> Any:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("companies")

    @server.tool(name="rating", annotations=ToolAnnotations(read_only_hint=True))
    def rate(company: str) -> dict[str, Any]:
        """Tell how those who worked for a company rate it, 1 to 5."""
        if company not in COMPANIES:
            raise ValueError(f"no company {company!r}")
        return {
            "company": company,
            "rating": rate_company(company),
            "source": f"REG-{company.upper()}",
        }

    return server


def board() -> Any:
    from mcp.server.mcpserver import MCPServer
    from mcp_types import ToolAnnotations

    server = MCPServer("board")

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def status(url: str) -> dict[str, Any]:
        """Tell whether the opening at an address still takes applications."""
        job = JOBS[urlsplit(url).path]
        return {"reference": job.reference, "status": "open" if is_open(job) else "closed"}

    return server


if __name__ == "__main__":
    if sys.argv[1] == "companies":
        companies().run("stdio")
    else:
        board().run("streamable-http", host="127.0.0.1", port=int(sys.argv[2]))
