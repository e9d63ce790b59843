"""The index of the admin: each table stands once, under the job that people come for."""

from __future__ import annotations

import re

import pytest
from django.contrib import admin
from django.urls import reverse

from agentweb.site.admin_jobs import JOBS
from conversations.models import User
from tests.web.test_admin_review import staff, superuser

pytestmark = pytest.mark.django_db


def captions(page: str) -> list[str]:
    return [text.strip() for text in re.findall(r'class="section"[^>]*>([^<]+)</a>', page)]


def test_every_table_is_of_one_job() -> None:
    named = [name for _title, names in JOBS.values() for name in names]
    assert sorted(named) == sorted(model.__name__ for model in admin.site._registry)


def test_the_index_and_the_bar_beside_every_page_are_by_job() -> None:
    client = superuser()
    titles = [str(title) for title, _names in JOBS.values()]
    assert captions(client.get(reverse("admin:index")).content.decode()) == titles
    beside = client.get(reverse("admin:conversations_budget_changelist")).content.decode()
    assert captions(beside) == titles
    assert "current-model" in beside


def test_jobs_without_a_table_that_one_may_see_are_not_there() -> None:
    client = staff("ada")
    User.objects.get(username="ada").user_permissions.clear()
    assert captions(client.get(reverse("admin:index")).content.decode()) == []


def test_the_page_of_an_app_is_as_django_makes_it() -> None:
    page = superuser().get(reverse("admin:app_list", args=["conversations"])).content.decode()
    assert "Alert deliveries" in page


def test_the_way_to_a_page_names_the_site_and_not_one_of_its_tables() -> None:
    page = superuser().get(reverse("admin:conversations_budget_add")).content.decode()
    way = re.search(r'<div class="breadcrumbs">(.*?)</div>', page, re.DOTALL)
    assert way is not None
    assert re.findall(r">([^<&]+)</a>", way[1]) == ["Home", "agentweb", "Budgets"]
