"""The pages of saved prompts, where a person's own are written, and what the composer asks for.

The composer gets a list to choose from, then the text, or first a form where it has variables. The
text is put into the message by static/prompts.js; nothing is sent.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from conversations.conf import conf
from conversations.files.file_texts import format_megabytes
from conversations.saved_prompts.saved_prompts import (
    PromptRefused,
    add_prompt,
    change_prompt,
    copy_prompt,
    delete_prompt,
    find_own_prompt,
    find_prompt,
    list_prompts,
)
from conversations.saved_prompts.variables import fill_in, parse_prompt
from conversations.transfer.prompt_files import import_prompt_file
from conversations.transfer.unpacking import UploadError
from conversations.web.forms.saved_prompts import (
    PromptForm,
    VariablesForm,
    word_import_problem,
    word_refusal,
)
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user

#: Prompts that the composer lists; the others are found by more letters.
MOST_CHOICES = 50


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    """Show all prompts, or those that are searched; with htmx only the list."""
    asked = request.GET.get("q", "")
    found = {"prompts": list_prompts(require_user(request), asked), "asked": asked}
    if request.htmx:  # type: ignore[attr-defined]
        return render(request, "conversations/_partials/prompt_rows.html", found)
    return _render_page(request, found)


@login_required
@require_POST
def import_file(request: HttpRequest) -> HttpResponse:
    """Add the prompts of a file to one's own, and say what became of each."""
    user = require_user(request)
    file = request.FILES.get("file")
    shown: dict[str, Any] = {}
    if file is None or file.file is None:
        shown = {"import_error": _("Choose a file first.")}
    else:
        try:
            report = import_prompt_file(user=user, file=file.file)
        except UploadError as error:
            shown = {"import_error": error.text}
        else:
            problems = [(name, word_import_problem(why)) for name, why in report.problems]
            shown = {"report": report, "problems": problems}
    status = 400 if "import_error" in shown else 200
    return _render_page(request, shown | {"prompts": list_prompts(user)}, status)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """Write a prompt."""
    form = PromptForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            add_prompt(owner_id=require_user(request).pk, wording=form.read_wording())
        except PromptRefused as error:
            _add_refusal(form, error)
        else:
            add_notice(request, _("The prompt was saved."))
            return redirect("saved_prompts")
    return _render_form(request, form)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def change(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    """Change a prompt of one's own; one of the site is shown."""
    user = require_user(request)
    row = find_own_prompt(user, prompt_id)
    if row is None:
        return _show_site_prompt(request, prompt_id)
    present = {"title": row.title, "command": row.command, "text": row.text}
    form = PromptForm(request.POST if request.method == "POST" else None, present)
    if form.is_valid():
        try:
            change_prompt(owner_id=user.pk, public_id=prompt_id, wording=form.read_wording())
        except PromptRefused as error:
            _add_refusal(form, error)
        else:
            add_notice(request, _("The prompt was saved."))
            return redirect("saved_prompts")
    return _render_form(request, form, prompt_id)


@login_required
@require_POST
def copy(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    """Copy a prompt of one's own or of the site, and open the copy."""
    user = require_user(request)
    row = find_prompt(user, prompt_id)
    if row is None:
        raise Http404("no such prompt")
    try:
        made = copy_prompt(user=user, prompt=row)
    except PromptRefused as error:
        add_notice(request, word_refusal(error.code))
        return redirect("saved_prompts")
    add_notice(request, _("This is the copy, with the command /%s.") % made.command)
    return redirect("change_prompt", made.public_id)


@login_required
@require_POST
def delete(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    """Delete a prompt of one's own."""
    try:
        if not delete_prompt(owner_id=require_user(request).pk, public_id=prompt_id):
            raise Http404("no such prompt")
    except PromptRefused as error:
        add_notice(request, word_refusal(error.code))
    else:
        add_notice(request, _("The prompt was deleted."))
    return redirect("saved_prompts")


@login_required
@require_safe
def choices(request: HttpRequest) -> HttpResponse:
    """List the prompts that fit what is typed in the composer."""
    asked = request.GET.get("q", "")
    rows = list_prompts(require_user(request), asked).all
    shown = {"rows": rows[:MOST_CHOICES], "count": len(rows), "asked": asked}
    return render(request, "conversations/_partials/prompt_choices.html", shown)


@login_required
@require_http_methods(["GET", "HEAD", "POST"])
def use(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    """Give the composer the text of a prompt; where it has variables, after they are filled in."""
    row = find_prompt(require_user(request), prompt_id)
    if row is None:
        raise Http404("no such prompt")
    parsed = parse_prompt(row.text)
    form = VariablesForm(parsed.variables, request.POST if request.method == "POST" else None)
    text = None
    if form.is_valid() or not parsed.variables:
        text = fill_in(parsed, form.read_values())
    shown = {"prompt": row, "form": form, "text": text}
    return render(request, "conversations/_partials/prompt_text.html", shown)


def _render_page(request: HttpRequest, found: dict[str, Any], status: int = 200) -> HttpResponse:
    limits = {
        "most_bytes": conf.max_import_bytes,
        "most": format_megabytes(conf.max_import_bytes),
    }
    context = build_page_context(request) | found | limits | {"tab": "prompts"}
    return render(request, "conversations/settings/prompts.html", context, status=status)


def _show_site_prompt(request: HttpRequest, prompt_id: UUID) -> HttpResponse:
    prompt = find_prompt(require_user(request), prompt_id)
    if prompt is None or request.method == "POST":
        raise Http404("no such prompt")
    shown = build_page_context(request) | {"tab": "prompts", "prompt": prompt}
    return render(request, "conversations/settings/prompt_of_site.html", shown)


def _add_refusal(form: PromptForm, error: PromptRefused) -> None:
    form.add_error("command" if error.code == "taken" else None, word_refusal(error.code))


def _render_form(
    request: HttpRequest, form: PromptForm, prompt_id: UUID | None = None
) -> HttpResponse:
    context = {"tab": "prompts", "form": form, "prompt_id": prompt_id}
    status = 400 if form.is_bound else 200
    shown = build_page_context(request) | context
    return render(request, "conversations/settings/prompt.html", shown, status=status)
