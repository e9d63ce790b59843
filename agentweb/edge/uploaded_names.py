"""Names of uploaded files, with the joiners that their writing needs.

Django removes what does not print by itself. Of that, joiners make one sign of several, as in the
emoji of a family, or keep letters apart, as in Persian.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.core.handlers.asgi import ASGIRequest
from django.http import QueryDict
from django.http.multipartparser import MultiPartParser
from django.utils.datastructures import MultiValueDict

from tools.workspace.paths import JOINERS


class _Parser(MultiPartParser):
    def sanitize_file_name(self, file_name: str) -> str | None:
        last = re.split(r"[/\\]", html.unescape(file_name))[-1]
        name = "".join(each for each in last if each.isprintable() or each in JOINERS)
        return None if name in {"", ".", ".."} else name


class PageRequest(ASGIRequest):
    """A request whose files keep their names."""

    def parse_file_upload(
        self, meta: Mapping[str, Any], post_data: Any
    ) -> tuple[QueryDict, MultiValueDict[str, UploadedFile[Any]]]:
        return _Parser(meta, post_data, self.upload_handlers, self.encoding).parse()
