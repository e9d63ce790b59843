"""Django settings, read from the environment. Embedded by default, scaled out by URL.

The `#:` comments above settings are the table in this package's README: their last sentence,
`Default: ...`, is for a default that is not a literal.
"""

from __future__ import annotations

import fcntl
import os
import secrets
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from agentweb import env
from conversations.conf import PREFIX, list_defaults
from conversations.context.policy.policy import THRESHOLDS
from conversations.operations.redis_address import make_broker, make_channel_host

BASE_DIR = Path(__file__).resolve().parent.parent
#: The key of the API; without one the emulator answers.
ANTHROPIC_API_KEY = env.text("ANTHROPIC_API_KEY")  # handed to one client; never stored or logged
#: Another address of the API.
ANTHROPIC_BASE_URL = env.api_address("ANTHROPIC_BASE_URL")
#: Database and secret of the embedded mode; workspaces and anchors, unless they are kept elsewhere.
#: Default: `.agentweb` beside `manage.py`.
DATA_DIR = Path(env.text("AGENTWEB_DATA_DIR", str(BASE_DIR / ".agentweb"))).resolve()


def _read_or_make_secret() -> str:
    """Return the site's secret, made on first use and readable by its owner only."""
    path = DATA_DIR / "secret_key"
    try:
        DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.is_file() and (key := path.read_text(encoding="ascii")):
            return key
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        with os.fdopen(handle, "r+", encoding="ascii") as file:
            # Another process may start at this moment; one whose disk was full left it empty.
            fcntl.flock(file, fcntl.LOCK_EX)
            key = file.read() or secrets.token_urlsafe(50)
            file.seek(0)
            file.write(key)
            return key
    except OSError as error:
        raise ImproperlyConfigured(env.describe_unwritable(DATA_DIR, error)) from error


#: Django's debug mode; never on a public address.
DEBUG = env.flag("AGENTWEB_DEBUG")
#: Signs sessions; kept in the data folder when it is not given. Default: made on first start.
SECRET_KEY = env.text("SECRET_KEY") or _read_or_make_secret()
#: Former values of it, separated by commas: what they signed or sealed stays good, until
#: `manage.py secrets rotate` has sealed it anew and everybody has logged in again.
SECRET_KEY_FALLBACKS = list(env.words("SECRET_KEY_FALLBACKS"))
#: Host names the site is reached by, besides the local ones.
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "[::1]", *env.words("AGENTWEB_HOSTS")]
#: Origins whose forms are accepted behind a proxy, such as `https://chat.example.org`.
CSRF_TRUSTED_ORIGINS = env.origins("AGENTWEB_ORIGINS")
#: The site is reached by HTTPS only: secure cookies, HSTS, redirects.
HTTPS = env.flag("AGENTWEB_HTTPS")
#: HTTPS for every host below the site's, too, and in the preload lists of browsers; hard to undo.
HSTS_PRELOAD = env.flag("AGENTWEB_HSTS_PRELOAD")

#: `postgresql://user:password@host/name` or `sqlite:///path`. Default: SQLite in the data folder.
_url = env.text("DATABASE_URL")
#: Connections of one process to PostgreSQL; all processes together may have at most 10 fewer than
#: its `max_connections`.
DATABASE_POOL = env.number("AGENTWEB_DATABASE_POOL", 16, least=1)
#: Statements that a connection to PostgreSQL repeats are prepared; a PgBouncer before 1.21 that
#: shares connections by transaction loses them.
DATABASE_PREPARES = env.flag("AGENTWEB_DATABASE_PREPARES", True)
DATABASES = {
    "default": env.database(_url, pool=DATABASE_POOL, prepares=DATABASE_PREPARES)
    if _url
    else env.sqlite(DATA_DIR / "agentweb.sqlite3")
}
#: PostgreSQL's owner of the tables, as which migrations run where the app has a role of its own
#: (`manage.py roles`).
_owner_url = env.text("AGENTWEB_MIGRATE_DATABASE_URL")
MIGRATE_DATABASE = env.owner_database(_owner_url) if _owner_url else None
#: Where the files of workspaces are kept: a Django storage as JSON, such as
#: `{"BACKEND": "storages.backends.s3.S3Storage", "OPTIONS": {"bucket_name": "files"}}` (needs the
#: extra `storages`). Default: a folder in the data folder.
_workspace_storage = env.storage("AGENTWEB_WORKSPACE_STORAGE")
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    "workspace": _workspace_storage
    or {
        "BACKEND": "conversations.files.workspace.disk.GuardedStorage",
        "OPTIONS": {"location": str(DATA_DIR / "workspaces")},
    },
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
AUTH_USER_MODEL = "conversations.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
#: OpenID providers that people may log in by: a JSON list of
#: `{"id", "name", "server", "client_id", "client_secret"}`; more keys in `conversations/accounts`.
LOG_IN_PROVIDERS = env.log_in_providers("AGENTWEB_LOG_IN_PROVIDERS")
# django-allauth speaks to providers; names, addresses and passwords of accounts are ours.
ACCOUNT_ADAPTER = "conversations.web.account_adapter.AccountAdapter"
SOCIALACCOUNT_ADAPTER = "conversations.web.openid_log_in.SocialAdapter"
MFA_ADAPTER = "conversations.web.second_factors.FactorAdapter"
MFA_FORMS = {"authenticate": "conversations.web.forms.second_factors.CodeForm"}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER, MFA_TOTP_TOLERANCE = "agentweb", 1
ACCOUNT_EMAIL_VERIFICATION = SOCIALACCOUNT_EMAIL_VERIFICATION = "none"
# Attempts are counted by conversations/accounts/throttle.py, over all processes.
ACCOUNT_RATE_LIMITS = False
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "login", "home", "login"

INSTALLED_APPS = [
    "daphne",
    "channels",
    "agentweb.site.admin_site.ReviewConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "agentweb",
    "conversations",
    "tools",
]
MIDDLEWARE = [
    "agentweb.observability.request_ids.identify_requests",
    # Before the redirect to HTTPS, so that it has the policy too.
    "agentweb.site.middleware.ContentPolicy",
    "agentweb.site.middleware.Security",
    "agentweb.site.middleware.NoFrames",
    "servestatic.middleware.ServeStaticMiddleware",
    "agentweb.site.middleware.NotStored",
    "agentweb.site.middleware.FormsInUtf8",
    # Before what reads cookies.
    "agentweb.site.middleware.TokensAlone",
    "agentweb.site.middleware.use_browser_zone",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "agentweb.site.middleware.HostNames",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "agentweb.site.middleware.SessionEnds",
    "agentweb.observability.request_ids.WhoAsks",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "agentweb.site.impersonation.impersonate",
    "agentweb.site.middleware.PersonLanguage",
    "agentweb.site.middleware.FormsAreNoPages",
    "agentweb.site.middleware.LogInFirst",
    "agentweb.site.middleware.ReasonFirst",
    "allauth.account.middleware.AccountMiddleware",
]
#: Django knows its two middlewares by name alone; `check_https` in conversations/checks.py.
SILENCED_SYSTEM_CHECKS = ["security.W001", "security.W002"]
ROOT_URLCONF = "agentweb.urls"
ASGI_APPLICATION = "agentweb.asgi.application"
TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": ["agentweb.site.template_loader.Loader"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "agentweb.site.context_processors.site",
            ],
        },
    }
]

LANGUAGE_CODE, TIME_ZONE, USE_I18N, USE_TZ = "en", "UTC", True, True
#: Where the words of other languages lie; a language is offered once its catalogue is there.
LOCALE_PATHS = [BASE_DIR / "conversations" / "locale"]
LANGUAGES = env.list_languages(LOCALE_PATHS[0])
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = DATA_DIR / "static"
SERVESTATIC_USE_FINDERS = True
SERVESTATIC_AUTOREFRESH = DEBUG
SERVESTATIC_ALLOW_ALL_ORIGINS = False

# One dict, so that Django 6's own policy setting can use it unchanged.
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "manifest-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}
SECURE_CONTENT_TYPE_NOSNIFF = True
# Not "no-referrer": browsers then send `Origin: null` with our own forms, which CSRF must refuse.
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SESSION_ENGINE = "conversations.models.sessions"
SESSION_COOKIE_HTTPONLY = CSRF_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = HTTPS
if HTTPS:
    # A neighbouring host cannot set cookies of these names for us.
    SESSION_COOKIE_NAME, CSRF_COOKIE_NAME = "__Host-sessionid", "__Host-csrftoken"
# What calls the process itself, without TLS and by any address.
SECURE_REDIRECT_EXEMPT = [r"^healthz/", r"^metrics$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = HTTPS and HSTS_PRELOAD
if not HSTS_PRELOAD:
    # They would have it for hosts that are not ours.
    SILENCED_SYSTEM_CHECKS += ["security.W005", "security.W021"]
if HTTPS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
DATA_UPLOAD_MAX_MEMORY_SIZE = 4_000_000
# The admin's page of a person has some 120 fields, each with what was shown, and one value for each
# permission.
DATA_UPLOAD_MAX_NUMBER_FIELDS = 1_000

#: Server of the mails that the site sends to its people: `smtp://user:password@host:587`, with
#: STARTTLS; `smtps://` for TLS from the start, `smtp+plain://` for none. Default: none; what would
#: be sent is kept in the folder `mail` of the data folder.
_mail = env.mail_server("AGENTWEB_MAIL_SERVER")
#: Sender of these mails.
DEFAULT_FROM_EMAIL = env.text("AGENTWEB_MAIL_FROM", "agentweb@localhost")
SENDS_MAIL, EMAIL_TIMEOUT = bool(_mail), 20
EMAIL_BACKEND = f"django.core.mail.backends.{'smtp' if _mail else 'filebased'}.EmailBackend"
EMAIL_FILE_PATH = DATA_DIR / "mail"
globals().update(_mail)

#: `redis://host:6379/0` (`rediss://` for TLS, `unix:///path?db=0` for a socket), or
#: `redis+sentinel://host:26379,host:26379/name/0`: what processes tell each other, and the broker
#: of workers. Installations that share a server take a number each. Options follow a question mark,
#: as in `?socket_timeout=2&client_name=chats`: `health_check_interval`, `socket_timeout`,
#: `socket_connect_timeout`, `retry_on_timeout`, `client_name`, `protocol`, `max_connections` and,
#: but for a socket, `socket_keepalive`; with TLS also `ssl_cert_reqs` (`required`, `optional` or
#: `none`), `ssl_check_hostname`, `ssl_ca_certs`, `ssl_ca_path`, `ssl_certfile`, `ssl_keyfile`,
#: `ssl_password` and `ssl_ciphers`; for a socket `db`, `username` and `password`; for sentinels
#: `sentinel_password` alone.
REDIS_URL = env.redis("REDIS_URL")
# A Redis that does not answer must not delay publishing: pages then notice changes themselves.
CHANNEL_LAYERS = (
    {
        "default": {
            "BACKEND": "conversations.live.layer.PipelinedLayer",
            "CONFIG": {
                "hosts": [make_channel_host(REDIS_URL, 2)],
                "prefix": env.make_namespace(REDIS_URL, SECRET_KEY),
            },
        }
    }
    if REDIS_URL
    else {"default": {"BACKEND": "channels.layers.InMemoryChannelLayer"}}
)
CELERY_BROKER_URL, CELERY_BROKER_TRANSPORT_OPTIONS = make_broker(REDIS_URL or "memory://")
CELERY_TASK_IGNORE_RESULT = True
# A task is the id of a turn; the database says whether it still has to run, and on which worker.
CELERY_TASK_DEFAULT_QUEUE = "agentweb"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = CELERY_WORKER_REDIRECT_STDOUTS = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BEAT_SCHEDULER = "agentweb.serving.beat_scheduler:Scheduler"
# What no worker took in time is not kept for the next one, which would do all of it at once; a
# minute is more than clocks may differ.
CELERY_BEAT_SCHEDULE = {
    name: {
        "task": f"conversations.{name}",
        "schedule": seconds,
        "options": {"expires": max(seconds, 60.0)},
    }
    for name, seconds in (
        ("sweep", 15.0), ("alert", 15.0), ("maintain", 600.0), ("verify", 86_400.0)
    )
}  # fmt: skip

# Every AGENTWEB_ setting of the environment; conf.py and policy.py hold the defaults.
for _name, _default in list_defaults().items():
    if env.text(PREFIX + _name.upper()):
        _read = env.threshold if _name in THRESHOLDS else env.typed
        globals()[PREFIX + _name.upper()] = _read(PREFIX + _name.upper(), _default)

PASSWORD_RESET_TIMEOUT = globals().get("AGENTWEB_MAILED_LINK_HOURS", 4) * 3_600

#: Count, and show `/metrics` (needs the extra `metrics`).
METRICS = env.flag("AGENTWEB_METRICS")
#: Bearer token for it; without one only this machine sees it, and not through a proxy.
METRICS_TOKEN = env.text("AGENTWEB_METRICS_TOKEN")
#: Port on which a worker shows its own; 0: none.
METRICS_PORT = env.number("AGENTWEB_METRICS_PORT", least=0, most=65_535)
#: Folder in which a process keeps a file fresh while it lives, for the health check of its
#: container.
ALIVE_DIR = env.text("AGENTWEB_ALIVE_DIR")
#: Every request is a line of the log, by the name of its route.
LOG_REQUESTS = env.flag("AGENTWEB_LOG_REQUESTS")
#: line, or json: one object on each line.
_log_format = env.choice("AGENTWEB_LOG_FORMAT", ("line", "json"))
#: Level of the app's own log lines: DEBUG, INFO, WARNING, ERROR or CRITICAL.
_log_level = env.choice("AGENTWEB_LOG_LEVEL", ("INFO", "DEBUG", "WARNING", "ERROR", "CRITICAL"))
# Pinned: at DEBUG the HTTP client would write whole prompts into the log.
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "agentweb.observability.logs.LineFormatter"},
        "json": {"()": "agentweb.observability.logs.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": _log_format}},
    "root": {"handlers": ["console"], "level": "WARNING"},
    "loggers": {
        "agentweb": {"level": _log_level},
        "anthropic": {"level": "WARNING"},
        "httpx2": {"level": "WARNING"},
        "httpcore2": {"level": "WARNING"},
        # Its lines quote what servers write, which may be what people wrote.
        "mcp": {"level": "CRITICAL"},
        # The relay reports an unreachable Redis once; this logger would log a traceback for each
        # attempt.
        "channels_redis": {"level": "CRITICAL"},
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}
