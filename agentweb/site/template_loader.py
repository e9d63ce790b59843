"""Loads templates without the layout that only readers of their source need.

Frames are rendered from templates in large numbers, and a quarter of their bytes would be
indentation. When a template is loaded, once in a process, its lines lose their indentation, and a
tag over several lines becomes one line. Other line ends stay, so no two words are joined; so do
all spaces within elements that show them.
"""

from __future__ import annotations

import re

from django.template import Engine, Template, base
from django.template.loaders import base as loaders
from django.template.loaders import cached, filesystem

from agentweb.site.template_folding import fold

_MARKS = re.compile(r"""(</?[a-zA-Z]\w*|[>"']|\n[ \t]*)""")
#: Elements that preserve white space: start and end of their tags.
_SHOWING = {"<pre": "</pre", "<textarea": "</textarea"}


def strip_layout(source: str) -> str:
    sent: list[str] = []
    end = ""  # of the tag, or the quotation in it, that this is within
    shown_until = ""
    for number, part in enumerate(base.tag_re.split(source)):
        if number % 2:  # code of a template
            sent.append(part)
            continue
        for piece in filter(None, _MARKS.split(part)):
            if piece == end:
                end = "" if piece == ">" else ">"
                if not end and sent[-1] == " ":
                    sent.pop()
            elif end == ">" and piece in {'"', "'"}:
                end = piece
            elif not end and piece[0] == "<" and piece.lstrip("</")[:1].isalpha():
                end = ">"
                shown_until = "" if piece == shown_until else _SHOWING.get(piece, shown_until)
            is_layout = piece[0] == "\n" and (end or not shown_until)
            sent.append((" " if end else "\n") if is_layout else piece)
    return "".join(sent)


class Outdented(filesystem.Loader):
    def get_contents(self, origin: base.Origin) -> str:
        return strip_layout(super().get_contents(origin))


class Folding(loaders.Loader):
    def get_template(self, template_name: str, skip: list[base.Origin] | None = None) -> Template:
        found = super().get_template(template_name, skip)
        fold(found)
        return found


class Loader(cached.Loader, Folding):
    """The project's templates, then those of the apps; each is read, compiled and folded once."""

    def __init__(self, engine: Engine) -> None:
        apps = "django.template.loaders.app_directories.Loader"
        super().__init__(engine, [f"{__name__}.{Outdented.__name__}", apps])
