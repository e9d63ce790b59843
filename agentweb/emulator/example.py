r"""An example of a script: `manage.py emulator --script agentweb/emulator/example.py`.

A small desk for bookings that works with a tool, forgets what is cut away and fails twice a day.
"""

from __future__ import annotations

from agentweb.emulator.script import after, always, call, fail, say, summary, think, when

SCRIPT = [
    when(
        r"book (?:a )?table for (?P<guests>\d+)",
        think("A table for {guests}: the book of today says what is free."),
        say("I look into the book."),
        call("read_file", path="bookings/today.txt"),
    ),
    after("read_file", say("The book says: {result}"), seen={"guests": r"\d+"}),
    when("which number", say("Your booking is {booking}."), seen={"booking": r"B-\d{4}"}),
    when("which number", say("I can't see a booking any more; please tell me its number.")),
    when("hurry", fail("overloaded:x2")),
    when("hurry", say("Here I am, at the third try.")),
    when("hang up", fail("cut_after:3")),
    summary(say("The guest began with: {first}")),
    always(say("You said: {prompt}")),
]
