"""The openings of the job site: generated from a fixed seed, always the same."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

PER_PAGE = 14
PAGES = 6

_ROLES = (
    "Senior .NET Engineer",
    "Senior C# Developer",
    "Senior Backend Engineer (.NET)",
    "Lead .NET Developer",
    "Senior .NET Consultant",
    "Senior Full-Stack .NET Engineer",
)
_DOMAINS = (
    "Payments",
    "Grid Balancing",
    "Hospital Scheduling",
    "Freight Tracking",
    "Crop Insurance",
    "Rail Ticketing",
    "Fraud Signals",
    "Water Metering",
    "Pension Records",
    "Parcel Lockers",
    "Clinical Trials",
    "Tax Filing",
    "Fleet Charging",
    "School Timetables",
)
_COMPANIES = (
    "Meridian Ledger",
    "Northwind Harbour",
    "Kestrel Analytics",
    "Bluepine Systems",
    "Oakbridge Digital",
    "Tidewater Labs",
    "Larkfield Software",
    "Granite Peak",
    "Silverbirch",
    "Juniper Row",
    "Copperline",
    "Redwater Works",
    "Quayside Data",
    "Highmoor",
    "Fenwick & Vale",
    "Starling Grid",
    "Amberlight",
    "Stonecrop",
)
_CITIES = (
    "Utrecht",
    "Leipzig",
    "Ghent",
    "Aarhus",
    "Lyon",
    "Porto",
    "Brno",
    "Tampere",
    "Graz",
    "Cork",
)
_CORE = ("C#", ".NET 8", "ASP.NET Core", "Azure", "SQL Server", "Docker", "Kubernetes")
_SIDE = (
    "PostgreSQL",
    "RabbitMQ",
    "Blazor",
    "React",
    "Terraform",
    "gRPC",
    "Redis",
    "WPF",
    "F#",
    "Kafka",
)
_PROCESSES = (
    "two calls of 45 minutes and no homework",
    "one call, a paid trial day and a talk with the team",
    "a code review of your own work followed by one long call",
    "three short calls within one week",
)
_ON_CALL = (
    "none at all",
    "one week in eight, paid extra",
    "one week in five, paid extra",
    "weekdays until 20:00",
)


@dataclass(frozen=True, slots=True)
class Opening:
    page: int
    number: int
    title: str
    company: str
    city: str
    domain: str
    rate: int
    remote: str
    stack: tuple[str, ...]
    growth: int
    interview: str
    on_call: str
    team_size: int
    months: int
    training_days: int
    equipment: int
    start: str
    reference: str

    @property
    def path(self) -> str:
        return f"/jobs/p{self.page}-{self.number:02d}"


def make_opening(page: int, number: int) -> Opening:
    """Return the opening at a place in the lists."""
    die = Random(f"opening {page} {number}")  # noqa: S311 - a story, not a secret
    place = (page - 1) * PER_PAGE + number - 1
    domain, company = _DOMAINS[place % len(_DOMAINS)], _COMPANIES[place * 5 % len(_COMPANIES)]
    city = die.choice(_CITIES)
    return Opening(
        page=page,
        number=number,
        title=f"{_ROLES[place * 7 % len(_ROLES)]}, {domain} ({company})",
        company=company,
        city=city,
        domain=domain,
        rate=die.randrange(480, 725, 5),
        remote=_remote(die, city),
        stack=_stack(die),
        growth=die.randint(1, 5),
        interview=die.choice(_PROCESSES),
        on_call=die.choice(_ON_CALL),
        team_size=die.randint(4, 14),
        months=die.choice((6, 9, 12, 18)),
        training_days=die.randint(0, 12),
        equipment=die.randrange(500, 3_100, 100),
        start=f"{die.randint(1, 28):02d} {die.choice(('January', 'February', 'March'))} 2027",
        reference=f"JR-{page}{number:02d}-{die.randint(1000, 9999)}",
    )


def list_openings(page: int) -> tuple[Opening, ...]:
    return tuple(make_opening(page, number) for number in range(1, PER_PAGE + 1))


def _remote(die: Random, city: str) -> str:
    days = die.randint(2, 3)
    throw = die.random()
    if throw < 0.6:
        return "fully remote"
    return f"hybrid, {days} days a week in {city}" if throw < 0.85 else f"on site in {city}"


def _stack(die: Random) -> tuple[str, ...]:
    core = ["C#", *die.sample(_CORE[1:], die.randint(2, 6))]
    return (*core, *die.sample(_SIDE, die.randint(1, 3)))
