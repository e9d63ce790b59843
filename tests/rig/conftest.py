"""One rig of each kind for all tests here: they kill its processes and restore it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.rig import model as models
from tests.rig.installations import MODES, Installation
from tests.rig.model import Model
from tests.rig.scenes import SCRIPT, SMALL


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "only_mode(name, why): the other mode has no such thing")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect rows of a mode that lacks what the test is about."""
    left = [one for one in items if not is_of_mode(one)]
    config.hook.pytest_deselected(items=left)
    items[:] = [one for one in items if is_of_mode(one)]


def is_of_mode(item: pytest.Item) -> bool:
    only, call = item.get_closest_marker("only_mode"), getattr(item, "callspec", None)
    return only is None or call is None or call.params["mode"] == only.args[0]


@pytest.fixture(scope="session")
def models_of_the_run() -> Iterator[dict[str, Model]]:
    found = {mode: models.start(SCRIPT) for mode in MODES}
    yield found
    for model in found.values():
        model.stop()


@pytest.fixture(scope="session", params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="session")
def shared_rig(
    mode: str, models_of_the_run: dict[str, Model], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    folder = tmp_path_factory.mktemp(f"rig-{mode}")
    with Installation.of(mode, folder, models_of_the_run[mode], **SMALL) as rig:
        rig.call("tests.rig.site_actions:allow", tools=["fire"])
        yield rig
        rig.verify()


@pytest_asyncio.fixture
async def rig(shared_rig: Installation) -> AsyncIterator[Installation]:
    """Provide the rig with all processes running; each test ends with the oracle."""
    shared_rig.look_from_here()
    yield shared_rig
    shared_rig.model.let_go()
    shared_rig.heal()
    await shared_rig.rest()
    await shared_rig.close()


@pytest.fixture
def model(rig: Installation) -> Model:
    return rig.model


@pytest.fixture
def rig_folder(tmp_path: Path) -> Path:
    """Return a folder for a rig of the test's own."""
    (tmp_path / "rig").mkdir()
    return tmp_path / "rig"
