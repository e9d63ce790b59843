"""The page My data: export, import, delete everything."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from conversations.accounts.people import save_preferences
from conversations.conf import conf
from conversations.files.attachments import drop_unsent
from conversations.files.file_texts import format_megabytes
from conversations.library.conversations import delete_everything
from conversations.library.erase import erase_due_conversations, is_erasure_pending
from conversations.library.folders import delete_folders
from conversations.library.retention import find_limits
from conversations.library.shared_links import list_audiences, revoke_links
from conversations.library.sidebar import count_conversations
from conversations.log.legal_holds import is_person_held, list_held
from conversations.runtime import dispatch
from conversations.runtime.adapters import workspace_for
from conversations.saved_prompts.saved_prompts import delete_prompts
from conversations.toolbox.mail_accounts import remove_mail_accounts
from conversations.web.forms.log_in import read_peer
from conversations.web.page_shell import add_notice, build_page_context
from conversations.web.responses import require_user


@login_required
@require_safe
def page(request: HttpRequest) -> HttpResponse:
    return render_data_page(request)


def render_data_page(
    request: HttpRequest, extra: dict[str, object] | None = None, status: int = 200
) -> HttpResponse:
    user = require_user(request)
    context = build_page_context(request) | {
        "counts": count_conversations(user),
        "most_megabytes": conf.max_import_bytes // 1_000_000,
        "most_bytes": conf.max_import_bytes,
        "most": format_megabytes(conf.max_import_bytes),
        "trash_days": conf.trash_days,
        "limits": find_limits(user),
        "held": list_held(user.pk).count(),
        "is_held": is_person_held(user.pk),
        "can_share": bool(list_audiences()),
    }
    return render(request, "conversations/data.html", context | (extra or {}), status=status)


@login_required
@require_POST
def delete(request: HttpRequest) -> HttpResponse:
    """Erase everything that the user keeps here; they have typed their name to confirm."""
    user = require_user(request)
    if request.POST.get("name", "").strip() != user.get_username():
        return render_data_page(
            request, {"delete_error": _("Type your user name to confirm.")}, 400
        )
    revoke_links(owner=user, peer=read_peer(request))
    for turn in delete_everything(owner_id=user.pk):
        dispatch.stop_turn(turn)
    erase_due_conversations(owner_id=user.pk)
    drop_unsent(owner_id=user.pk)
    workspace_for(user.pk).clear()
    remove_mail_accounts(owner_id=user.pk)
    delete_prompts(owner_id=user.pk)
    delete_folders(owner_id=user.pk)
    held, is_held = list_held(user.pk).count(), is_person_held(user.pk)
    if not is_held:
        save_preferences(user_id=user.pk, changes={"instructions": ""})
    if is_erasure_pending(owner_id=user.pk):
        notice = _("Your data was erased; what is still answering follows in a moment.")
    else:
        notice = _("Your data was erased.")
    if is_held:
        notice += (
            " "
            + _(
                "What is under a legal hold stays: %d chats, files, folders, prompts, instructions,"
                " mail accounts."
            )
            % held
        )
    elif held:
        notice += " " + _("Chats under a legal hold stay: %d.") % held
    add_notice(request, notice)
    return redirect("data")
