"""Notices of budgets that a person has read and put away."""

from __future__ import annotations

from django.db import transaction

from conversations.models import User
from conversations.preferences import preferences
from conversations.queries.notices import notices
from conversations.services.people import keep_preferences

#: Notices that are remembered at once; more budgets nobody has.
MOST = 40


@transaction.atomic
def put_notice_away(*, user_id: int, name: str) -> bool:
    """Remember that a present notice was read; False: there is none of that name.

    What windows of the past had to say is forgotten.
    """
    user = User.objects.select_for_update().only("preferences").get(pk=user_id)
    present = notices(user_id)
    if name not in [one.name for one in present]:
        return False
    windows = {str(one.window) for one in present}
    before = preferences(user.preferences).put_away.split()
    kept = [one for one in before if one.partition(":")[0] in windows and one != name]
    keep_preferences(user_id=user_id, changes={"put_away": " ".join([*kept, name][-MOST:])})
    return True
