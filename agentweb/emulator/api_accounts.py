"""API keys: any key is valid, and names the organization and workspace it belongs to.

`sk-anything` is the default organization; `sk-anything@acme/blue` is workspace blue of acme. A
workspace `us` keeps its inference there, an organization `priority` has bought capacity. Keys that
start with `invalid`, `unpaid` or `forbidden` fail, to test those errors through the application.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import NAMESPACE_URL, uuid5

from agentweb.emulator.errors import ApiError, Invalid
from agentweb.emulator.versions import VERSIONS, Version

_BUILT_IN = (
    ("invalid", 401, "invalid x-api-key"),
    (
        "unpaid",
        402,
        "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.",
    ),
    ("forbidden", 403, "Your API key does not have permission to use the specified resource."),
)


@dataclass(frozen=True, slots=True)
class Account:
    organization: str
    workspace: str

    @property
    def organization_id(self) -> str:
        return str(uuid5(NAMESPACE_URL, f"organization:{self.organization}"))

    @property
    def workspace_id(self) -> str:
        return f"wrkspc_{uuid5(NAMESPACE_URL, f'{self.organization}/{self.workspace}').hex[:24]}"


def admit(headers: Mapping[str, str], bad_keys: Mapping[str, ApiError]) -> Account:
    """Return the account of the request's key; raises the ApiError of a key that is refused."""
    key = headers.get("x-api-key", "").strip()
    if not key:
        key = headers.get("authorization", "").removeprefix("Bearer ").strip()
    if not key:
        raise ApiError(401, "x-api-key header is required")
    if key in bad_keys:
        raise bad_keys[key]
    for start, status, text in _BUILT_IN:
        if key.removeprefix("sk-").startswith(start):
            raise ApiError(status, text)
    _, _, scope = key.partition("@")
    organization, _, workspace = scope.partition("/")
    return Account(organization or "default", workspace or "default")


def find_version(headers: Mapping[str, str]) -> Version:
    """Return the API version of a request; raises the API's error for a missing or unknown one."""
    version = headers.get("anthropic-version")
    if version is None:
        raise Invalid("anthropic-version: header is required")
    if version not in VERSIONS:
        raise Invalid(f'anthropic-version: "{version}" is not a valid version.')
    return VERSIONS[version]


def betas(headers: Mapping[str, str]) -> frozenset[str]:
    """Return the requested beta names; unknown ones are accepted."""
    return frozenset(
        name.strip() for name in headers.get("anthropic-beta", "").split(",") if name.strip()
    )
