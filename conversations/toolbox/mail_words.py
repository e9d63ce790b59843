"""What the trial of a mail account, and its last use, say to the person whose account it is.

The tools say it in English, to the model, too. `tests/web/test_shown_words.py` holds that each
sentence of a trial stands here.
"""

from __future__ import annotations

from conversations.context.translation import gettext_noop, mark_recorded

WORDS = (
    gettext_noop("The mail server %(name)s could not be reached."),
    gettext_noop("The mail server %(name)s is refused: %(why)s"),
    gettext_noop("The mail server has no valid name."),
    gettext_noop("The mail server took over %(count)s seconds."),
    gettext_noop("The mail server's certificate is not valid: %(why)s."),
    gettext_noop("The mail server does not speak TLS properly on this port."),
    gettext_noop("The mail server broke off."),
    gettext_noop("The server's greeting does not end."),
    gettext_noop("The server spoke on before encryption began; the connection is ended."),
    gettext_noop("The server sent more than was asked for; the connection is ended."),
    gettext_noop("The server broke off, or did not greet as a mail server does."),
    gettext_noop("The server sent a line over %(count)s bytes."),
    gettext_noop("The server did not greet as a mail server does."),
    gettext_noop("The server did not answer as a mail server does."),
    gettext_noop("The mail server refused: %(why)s"),
    gettext_noop("The mail server offers no encryption on this port; nothing was sent."),
    gettext_noop("The mail server's answer cannot be read."),
    gettext_noop("The mail server's answer does not end."),
    gettext_noop("The mail server's answer is nested too deeply."),
    gettext_noop("The mail server ended the connection."),
    gettext_noop("The mail server answered before it was asked."),
    gettext_noop(
        "The mail server refused the user name or the password. Many servers want an "
        "app password, made for this purpose."
    ),
    gettext_noop("The mail server offers no way to log in with a password."),
    gettext_noop("The account %(name)s has no server for sending mail."),
    gettext_noop("The server for sending does not offer to log in with %(name)s."),
    gettext_noop("The server for sending refused the user name or the password."),
    gettext_noop("The OAuth provider of this account is not set up on this site any more."),
    gettext_noop(
        "%(name)s gave no access token (status %(number)s); the refresh token may have "
        "ended. A new one can be entered on the page Settings, Mail."
    ),
    gettext_noop("%(name)s gave no access token: %(why)s"),
    gettext_noop("Reading works, but sending does not: %(why)s"),
    gettext_noop("The folder %(name)s could not be opened; list_mail_folders shows what there is."),
    gettext_noop(
        "The stored password of this account cannot be opened any more; the user must enter it "
        "again on the page Settings, Mail."
    ),
    gettext_noop(
        "The server broke off after it was given the mail: it may have been sent. Check before "
        "repeating."
    ),
)
for _each in WORDS:
    mark_recorded(_each)
