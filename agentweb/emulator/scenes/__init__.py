"""The scripted model: the first scene that answers wins."""

from __future__ import annotations

from agentweb.emulator.scenes.attachments import look
from agentweb.emulator.scenes.citations import cite
from agentweb.emulator.scenes.jobsearch import job_search
from agentweb.emulator.scenes.longform import long_answer
from agentweb.emulator.scenes.rounds import play_rounds
from agentweb.emulator.scenes.scene import Scene
from agentweb.emulator.scenes.server_tools import read_page, run_code, search_web
from agentweb.emulator.scenes.small_talk import talk
from agentweb.emulator.scenes.structured import answer_in_form
from agentweb.emulator.scenes.summary import summarise
from agentweb.emulator.scenes.title import name_conversation
from agentweb.emulator.scenes.tool_calls import use_tools
from agentweb.emulator.scenes.tool_results import answer_results

SCENES: tuple[Scene, ...] = (
    answer_in_form,
    summarise,
    name_conversation,
    play_rounds,
    search_web,
    run_code,
    read_page,
    cite,
    look,
    job_search,
    answer_results,
    use_tools,
    long_answer,
    talk,
)
