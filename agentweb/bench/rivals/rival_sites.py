"""Chainlit and the LiteLLM proxy: the newest version of each, in an environment of its own.

They are asked for the same answers of the same emulator as the product and the relay. Each is set
up as its documentation says: Chainlit with the SDK's stream, the proxy with its Messages endpoint.
Neither stores anything as it is set up here, so what they cost is a floor of theirs.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from agentweb.bench.environments import install_packages
from agentweb.bench.processes import (
    ROOT,
    NotStarted,
    clean_environment,
    find_free_port,
    start_process,
    wait_for_output,
)
from agentweb.bench.rivals.rival_pages import CHAINLIT, LITELLM, PROXY_KEY, RELAY
from agentweb.bench.site_under_test import MODEL, Site, run_relay, run_site

PROGRAMS = Path(__file__).parent / "programs"
_CONFIGURATION = """
model_list:
  - model_name: {model}
    litellm_params: {{model: anthropic/{model}, api_base: "{api}", api_key: bench}}
"""


@dataclass(frozen=True, slots=True)
class Rival:
    packages: tuple[str, ...]
    #: What its log says once it answers.
    ready: str


RIVALS = {
    LITELLM: Rival(("litellm[proxy]",), "Uvicorn running"),
    CHAINLIT: Rival(("chainlit", "anthropic"), "Your app is available"),
}


def install_rivals(names: Sequence[str], folder: Path, say: Callable[[str], None]) -> None:
    """Install rivals below a folder; raises NotStarted if one cannot be."""
    for name in names:
        try:
            version = install_packages(RIVALS[name].packages, folder / name)
        except subprocess.SubprocessError as error:
            said = getattr(error, "stderr", None) or str(error)
            raise NotStarted(f"{name} could not be installed: {said[-300:]}") from error
        say(f"{name} {version}")


@contextmanager
def run_side(
    side: str, api: str, rivals: Path | None, titles: str = "off", root: Path = ROOT
) -> Iterator[Site]:
    """Run the relay, a rival that is installed below a folder, or a tree's product in a mode."""
    if side == RELAY:
        running = run_relay(api)
    elif rivals is not None and side in RIVALS:
        running = run_rival(side, api, rivals)
    else:
        running = run_site(side, api, root=root, AGENTWEB_TITLE_MODEL=titles)
    with running as tested:
        yield tested


def list_chats(tested: Site, side: str, count: int) -> list[dict[str, Any]]:
    """Return what the client needs of so many conversations: nothing where nobody logs in."""
    return [{} for _ in range(count)] if find_page(side) else tested.people(count)


def find_page(side: str) -> str:
    """Return the client's page for a side; "" for the product, whose pages are tabs."""
    return side if side == RELAY or side in RIVALS else ""


@contextmanager
def run_rival(name: str, api: str, folder: Path) -> Iterator[Site]:
    """Run a rival that `install_rivals` has installed below a folder."""
    home = (folder / name).resolve()
    with TemporaryDirectory(prefix="agentweb-bench-") as made:
        place, port = Path(made), find_free_port()
        environment = clean_environment(
            ANTHROPIC_API_KEY="bench", ANTHROPIC_BASE_URL=api, NO_PROXY="*", HOME=made,
            RIVAL_MODEL=MODEL, CHAINLIT_APP_ROOT=made, LITELLM_MASTER_KEY=PROXY_KEY,
            # Its list of prices is otherwise fetched at the start.
            LITELLM_LOCAL_MODEL_COST_MAP="True",
        )  # fmt: skip
        command = _write_command(name, home, place, api, port)
        process = start_process(name, command, place, environment, python=home / "bin/python")
        try:
            wait_for_output(process, RIVALS[name].ready)
            yield Site(f"http://127.0.0.1:{port}", environment, place, {name: process})
        finally:
            process.stop()


def _write_command(name: str, home: Path, place: Path, api: str, port: int) -> list[str]:
    at = ["--host", "127.0.0.1", "--port", str(port)]
    if name == CHAINLIT:
        program = str(PROGRAMS / "chainlit_application.py")
        return ["-m", "chainlit", "run", program, "--headless", *at]
    configuration = place / "litellm.yaml"
    configuration.write_text(_CONFIGURATION.format(model=MODEL, api=api), encoding="utf-8")
    return [str(home / "bin/litellm"), "--config", str(configuration), *at]
