"""Logging in by an OpenID provider (authorization code flow, with PKCE, state and nonce).

django-allauth speaks the protocol. Stricter than its default, the signature of every ID token is
verified with the provider's present keys, the token must carry the nonce of this log-in, be for
this client alone, and be about the person of the user information; the provider's own document must
name the configured server. A refusal is one page in plain words; the log has the reason.
"""

from __future__ import annotations

import logging
import secrets
from typing import Any

import jwt
import requests
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.socialaccount.providers.oauth2.client import OAuth2Error
from allauth.socialaccount.providers.oauth2.views import OAuth2CallbackView
from allauth.socialaccount.providers.openid_connect.views import OpenIDConnectOAuth2Adapter
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from conversations.accounts.openid_providers import (
    LogInRefused,
    OpenIdProvider,
    close_account,
    find_linked_user,
    find_openid_provider,
    list_openid_providers,
    may_log_in,
    open_account,
    read_account_facts,
    sync_groups,
)
from conversations.web.responses import read_next

logger = logging.getLogger("agentweb.log_ins")
#: Asymmetric algorithms; the key of a provider must never be taken for a shared secret.
ALGORITHMS = frozenset({
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
})  # fmt: skip
#: Seconds that the clocks of the two servers may differ.
LEEWAY = 30


class OpenIdAdapter(OpenIDConnectOAuth2Adapter):
    """One log-in by one provider."""

    #: The nonce that this log-in was begun with.
    nonce = ""

    @property
    def openid_config(self) -> Any:
        config = super().openid_config
        provider: Any = self.get_provider()  # type: ignore[no-untyped-call]
        server = provider.app.settings["server_url"]
        named = str(config.get("issuer", "")) if isinstance(config, dict) else ""
        if named.rstrip("/") != server.rstrip("/"):
            raise OAuth2Error("the server's document names another issuer")
        return config

    def complete_login(
        self, request: HttpRequest, app: SocialApp, token: SocialToken, **kwargs: Any
    ) -> Any:
        claims = self._verify(app, kwargs["response"].get("id_token") or "")
        told = self._fetch_user_info(token.token)
        if told.get("sub") != claims["sub"]:
            raise OAuth2Error("the user information is of another person")
        provider: Any = self.get_provider()  # type: ignore[no-untyped-call]
        login = provider.sociallogin_from_response(request, {"userinfo": told})
        # The provider's facts of a person are used now, and not kept.
        login.account.extra_data = read_account_facts(login.account)
        login.email_addresses = []
        login.claims = claims | told
        return login

    def _verify(self, app: SocialApp, id_token: str) -> dict[str, Any]:
        config = self.openid_config
        try:
            head = jwt.get_unverified_header(id_token)
            if head.get("alg") not in ALGORITHMS:
                raise OAuth2Error("the token is signed by no accepted algorithm")
            claims: dict[str, Any] = jwt.decode(
                id_token,
                _find_key(config["jwks_uri"], head),
                algorithms=[head["alg"]],
                issuer=config["issuer"],
                audience=app.client_id,
                leeway=LEEWAY,
                options={"require": ["exp", "iat", "iss", "aud", "sub"]},
            )
        except (KeyError, TypeError, ValueError, jwt.PyJWTError) as error:
            raise OAuth2Error("the token is not valid") from error
        if not self.nonce or not secrets.compare_digest(str(claims.get("nonce")), self.nonce):
            raise OAuth2Error("the token has the nonce of another log-in")
        if claims.get("azp", app.client_id) != app.client_id or not claims.get("sub"):
            raise OAuth2Error("the token is for another client")
        return claims


def _find_key(address: str, head: dict[str, Any]) -> jwt.PyJWK:
    """Return the provider's present key of a token; a token may name none where there is one."""
    with DefaultSocialAccountAdapter().get_requests_session() as session:
        answer = session.get(address)
        answer.raise_for_status()
        keys = jwt.PyJWKSet.from_dict(answer.json()).keys
    found = [key for key in keys if head.get("kid") in (None, key.key_id)]
    if len(found) != 1:
        raise OAuth2Error("the provider has no such key now")
    return found[0]


class OpenIdCallback(OAuth2CallbackView):
    adapter: OpenIdAdapter

    def _get_state(self, request: HttpRequest, provider: Any) -> Any:
        state, response = super()._get_state(request, provider)
        self.adapter.nonce = (state or {}).get("nonce", "")
        return state, response


class SocialAdapter(DefaultSocialAccountAdapter):
    """Who gets in by a provider, and as whom."""

    def list_apps(
        self, request: Any, provider: Any = None, client_id: Any = None
    ) -> list[SocialApp]:
        """Make the providers of the setting; none are in the database."""
        found = [_make_app(each) for each in list_openid_providers()]
        return [
            each
            for each in found
            if provider in (None, each.provider, each.provider_id)
            and client_id in (None, each.client_id)
        ]

    def on_authentication_error(
        self,
        request: HttpRequest,
        provider: Any,
        error: Any = None,
        exception: Any = None,
        extra_context: Any = None,
    ) -> None:
        reason = str(exception or error or "")
        cause = type(getattr(exception, "__cause__", None)).__name__
        logger.warning("a log-in by %s failed: %s (%s)", provider.app.provider_id, reason, cause)
        is_cancelled = request.GET.get("error") == self._cancelled
        raise ImmediateHttpResponse(
            refuse_log_in(request, "cancelled" if is_cancelled else "failed")
        )

    _cancelled = OpenIdAdapter.login_cancelled_error

    def pre_social_login(self, request: HttpRequest, sociallogin: Any) -> None:
        provider = _require(sociallogin.account.provider)
        claims = sociallogin.claims
        account = sociallogin.account if sociallogin.is_existing else None
        if not may_log_in(provider, claims):
            if account is not None:
                close_account(account)
            raise ImmediateHttpResponse(refuse_log_in(request, "not_allowed"))
        if account is None:
            self._find_or_refuse(request, sociallogin, provider)
        elif not sociallogin.user.is_active:
            if not open_account(account):
                raise ImmediateHttpResponse(refuse_log_in(request, "closed"))
            sociallogin.user.refresh_from_db()
        if sociallogin.is_existing:
            sync_groups(provider, sociallogin.user, claims)

    def _find_or_refuse(
        self, request: HttpRequest, sociallogin: Any, provider: OpenIdProvider
    ) -> None:
        """Link the account with the verified address, or see that there may be a new one."""
        try:
            user = find_linked_user(provider, sociallogin.claims)
        except LogInRefused as refused:
            raise ImmediateHttpResponse(refuse_log_in(request, str(refused))) from refused
        if user is not None:
            sociallogin.user = user
            sociallogin.account.user = user
            sociallogin.account.save()
        elif not provider.new_accounts:
            raise ImmediateHttpResponse(refuse_log_in(request, "no_account"))

    def is_open_for_signup(self, request: HttpRequest, sociallogin: Any) -> bool:
        return _require(sociallogin.account.provider).new_accounts

    def save_user(self, request: HttpRequest, sociallogin: Any, form: Any = None) -> Any:
        if sociallogin.claims.get("email_verified") is not True:
            # Whoever proves the address later must not be let into this account by it.
            sociallogin.user.email = ""
        user = super().save_user(request, sociallogin, form)
        # The address is the account's own: a copy would stay when it is changed.
        EmailAddress.objects.filter(user=user).delete()
        sync_groups(_require(sociallogin.account.provider), user, sociallogin.claims)
        return user


def _make_app(provider: OpenIdProvider) -> SocialApp:
    return SocialApp(
        provider="openid_connect",
        provider_id=provider.id,
        name=provider.name,
        client_id=provider.client_id,
        secret=provider.client_secret,
        settings={
            "server_url": provider.server,
            "oauth_pkce_enabled": True,
            "scope": list(provider.scopes),
        },
    )


def _require(id: str) -> OpenIdProvider:
    provider = find_openid_provider(id)
    if provider is None:
        raise Http404("no such provider")
    return provider


@require_safe
def begin(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Send the person to the provider."""
    _require(provider_id)
    provider: Any = OpenIdAdapter(request, provider_id).get_provider()  # type: ignore[no-untyped-call]
    provider.oauth2_adapter_class = OpenIdAdapter
    nonce = secrets.token_urlsafe(24)
    try:
        response: HttpResponse = provider.redirect(
            request,
            "login",
            next_url=read_next(request.GET) or None,
            auth_params={"nonce": nonce},
            nonce=nonce,
        )
    except (requests.RequestException, OAuth2Error, KeyError) as error:
        logger.warning("the provider %s cannot be used: %s", provider_id, type(error).__name__)
        return refuse_log_in(request, "unreachable")
    return response


@require_safe
def callback(request: HttpRequest, provider_id: str) -> HttpResponse:
    """Receive the person from the provider, with a code for this log-in."""
    _require(provider_id)
    adapter = OpenIdAdapter(request, provider_id)
    view: Any = OpenIdCallback.adapter_view(adapter)  # type: ignore[no-untyped-call]
    response: HttpResponse = view(request)
    return response


def refuse_log_in(request: HttpRequest, why: str) -> HttpResponse:
    """Answer with the page that says why somebody is not let in."""
    words = {
        "cancelled": _("The log-in was cancelled."),
        "failed": _("The log-in was not completed. Start again from the log-in page."),
        "unreachable": _("The log-in service cannot be reached now. Try again in a few minutes."),
        "not_allowed": _("You are not among the people who may use this site."),
        "closed": _("This account was closed by an administrator."),
        "no_account": _("You have no account here. Ask an administrator for one."),
        "taken": _(
            "An account here has your e-mail address already. Log in to it with its password, or"
            " ask an administrator."
        ),
    }
    status = 503 if why == "unreachable" else 403
    return render(request, "registration/refused.html", {"words": words[why]}, status=status)
