"""The text of a job page: long, plausible, different on every page."""

from __future__ import annotations

from random import Random

from agentweb.demo.openings import Opening

_COMPANY = (
    (
        "{company} has built software for {area} since 2011 and is still owned by the "
        "people who founded it."
    ),
    (
        "Our customers in {area} do not change their systems lightly, so what we deliver "
        "has to last for years."
    ),
    (
        "The office in {city} is small on purpose; most of our conversations are written "
        "down and can be read later."
    ),
    (
        "Last year we moved the last customer of our {area} product off the old monolith "
        "and switched it off for good."
    ),
    (
        "We are profitable, we publish our figures inside the company every quarter, and "
        "we have never had a lay-off."
    ),
    (
        "Every engineer at {company} spends two days a year with a customer, because "
        "{area} cannot be learned from tickets."
    ),
    (
        "The {area} market in Europe is regulated; our auditors know our code base almost "
        "as well as we do."
    ),
    (
        "We keep one product, one code base and one release train, and we say no to "
        "features that would split them."
    ),
)
_WORK = (
    (
        "You take over the services that calculate, settle and report everything that "
        "happens in {area}."
    ),
    (
        "You will find {count} services, most of them written in the last three years and "
        "all of them with an owner."
    ),
    (
        "A typical change touches one service, one migration and one dashboard, and it is "
        "live on the same day."
    ),
    "You review the work of two colleagues every day and have your own work reviewed in return.",
    (
        "We measure latency at the edge and in the database, and a regression of ten "
        "percent stops the release."
    ),
    (
        "Design notes are two pages long, are discussed for at most one week and are kept "
        "next to the code."
    ),
    (
        "You will pair with the domain experts for {area}, who write the acceptance tests "
        "in plain sentences."
    ),
    (
        "Incidents are written up without names; the list of the last forty is open to "
        "every candidate on request."
    ),
    (
        "The build takes nine minutes, the slowest test suite takes four, and both numbers "
        "are on a screen in {city}."
    ),
    (
        "Data for {area} arrives in bursts, so queues, back-pressure and idempotent "
        "handlers are your daily bread."
    ),
)
_DUTIES = (
    "own the {area} settlement service from design note to dashboard",
    "keep the public interface of the {area} platform stable across releases",
    "move the remaining batch jobs to event handlers that can be replayed",
    "write migrations that run while customers are working",
    "find the queries that hurt and make them boring again",
    "mentor two mid-level engineers who joined this spring",
    "answer questions from support twice a week, in writing",
    "prepare the yearly load test together with the operations team",
    "review threat models for everything that touches personal data",
    "retire one piece of old code every month and tell us which one",
    "take part in hiring: one call every two weeks at most",
    "speak with customers in {city} and elsewhere when a release changes their work",
)
_QUESTIONS = (
    (
        "Who decides what is built?",
        "A product manager for {area} proposes, the team sizes it, and both sign the plan.",
    ),
    (
        "How are meetings handled?",
        (
            "There is one stand-up in writing and one planning hour a week; Fridays are "
            "free of meetings."
        ),
    ),
    (
        "What does the first month look like?",
        "You ship a small change in week one and lead a medium one in week four.",
    ),
    (
        "How is quality kept?",
        (
            "Tests are written with the code, flaky tests are deleted within a day, and "
            "coverage is not a target."
        ),
    ),
    (
        "Is there legacy code?",
        (
            "Yes, about {count} thousand lines around {area}, all of it behind tests and "
            "on a list with dates."
        ),
    ),
    (
        "Who are the users?",
        "Back-office staff, auditors, and some {count} partner systems that call us day and night.",
    ),
    (
        "Which tools are provided?",
        (
            "Rider or Visual Studio, as you like, a test cluster of your own and a budget "
            "for the rest."
        ),
    ),
    (
        "What happens after the contract?",
        "Two out of three contractors at {company} were extended at least once.",
    ),
    (
        "How is documentation done?",
        "Next to the code, in Markdown, reviewed like code and rendered on every build.",
    ),
    (
        "Why is this role open?",
        (
            "The {area} team doubles its scope next year, and one colleague moves to the "
            "platform team."
        ),
    ),
)
_BENEFITS = (
    "invoices are paid within ten days, without exception",
    "travel to the yearly gathering in {city} is paid and optional",
    "you keep the rights to libraries that you publish with our consent",
    "holidays are planned together and never refused later",
    "conference tickets are paid when you bring back notes for the others",
    "there is no time tracking beyond what the law asks for",
)
_LEGAL = (
    (
        "{company} decides about applications on skills alone and keeps the notes of every "
        "decision for one year."
    ),
    (
        "Your data is stored in the European Union, is seen by at most five people, and is "
        "erased after six months."
    ),
    (
        "If you need an adjustment to take part in the process, write one line to the "
        "contact and it will be made."
    ),
    (
        "Agencies are asked not to send profiles; we work without them, and unsolicited "
        "profiles are erased."
    ),
    (
        "The figures on this page are binding for contracts that start before the end of "
        "the first quarter."
    ),
)


class Prose:
    """Generates the sections of one page."""

    def __init__(self, opening: Opening) -> None:
        self._opening = opening
        self._die = Random(f"prose {opening.reference}")  # noqa: S311 - a story, not a secret

    def company(self) -> list[str]:
        return self._paragraphs(_COMPANY, 3, 5)

    def work(self) -> list[str]:
        return self._paragraphs(_WORK, 6, 6)

    def duties(self) -> list[str]:
        return [self._fill(line) for line in self._die.sample(_DUTIES, len(_DUTIES))]

    def questions(self) -> list[tuple[str, str]]:
        chosen = self._die.sample(_QUESTIONS, len(_QUESTIONS))
        return [(question, self._long_answer(answer)) for question, answer in chosen]

    def benefits(self) -> list[str]:
        return [self._fill(line) for line in self._die.sample(_BENEFITS, len(_BENEFITS))]

    def legal(self) -> list[str]:
        return [self._fill(line) for line in _LEGAL]

    def _long_answer(self, answer: str) -> str:
        more = self._die.sample(_WORK + _COMPANY, 6)
        return " ".join(self._fill(line) for line in (answer, *more))

    def _paragraphs(self, bank: tuple[str, ...], paragraphs: int, sentences: int) -> list[str]:
        return [
            " ".join(self._fill(line) for line in self._die.sample(bank, sentences))
            for _ in range(paragraphs)
        ]

    def _fill(self, line: str) -> str:
        place = self._opening
        return line.format(
            company=place.company,
            city=place.city,
            area=place.domain.lower(),
            count=self._die.randint(12, 60),
        )
