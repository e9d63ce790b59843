"""Texts about how turns ended."""

from __future__ import annotations

from django.utils.translation import gettext as _

from conversations.budgets.units import show_amount
from conversations.rendering.model_names import name_scope
from conversations.rendering.numbers import budget_name, of_budget


def describe_ending(state: str, reason: str, code: str = "") -> str:
    """Return how a turn ended, in a few words; "" when it completed normally."""
    match state, reason:
        case "cancelled", _reason:
            return _("Stopped")
        case "interrupted", _reason:
            return _("Interrupted. Partial answer kept.")
        case "failed", "budget":
            return _("Over budget")
        case "failed", "context":
            return _("Too long for the model")
        case _state, "loop_limit":
            return _describe_limit(code)
        case "failed", _reason:
            return _("Failed")
        case _state, "max_tokens":
            return _("Cut at the length limit")
        case _state, "refusal":
            return _("The model declined to answer")
        case _state, "pause_turn":
            return _("Paused by the model")
        case _state, "context":
            return _("The context is full")
        case _state, "truncated":
            return _("The answer ended unexpectedly")
        case _:
            return ""


def _describe_limit(code: str) -> str:
    match code:
        case "turn_money":
            return _("Stopped at the limit of cost for one turn")
        case "turn_time":
            return _("Stopped at the limit of time for one turn")
        case "turn_rounds":
            return _("Stopped at the limit of model calls for one turn")
        case "turn_tools":
            return _("Stopped at the limit of tool calls for one turn")
        case "wrong_calls":
            return _("Stopped after tool calls that could not run")
        case _:
            return _("Stopped at a limit for one turn")


def explain_ending(state: str, reason: str, *, has_answer: bool) -> str:
    """Return what an ending means and what can be done; "" where `describe_ending` is enough."""
    match state, reason:
        case "done", "pause_turn" | "max_tokens" | "loop_limit" if not has_answer:
            return _("Nothing was said before that; your message can be answered again.")
        case "failed", "budget":
            return _(
                "Your message is kept. Try it again when the budget starts anew, or ask an"
                " administrator for more."
            )
        case "failed", "context":
            return _(
                "It was reduced as far as the policy allows. What takes the most room can be left"
                " out, or sent shortened by another policy."
            )
        case _state, "max_tokens":
            return _("An answer may have only so many tokens; the rest can be asked for.")
        case _state, "pause_turn":
            return _("A long step of its own was not finished; it can go on from here.")
        case _state, "loop_limit" if has_answer:
            return _("A turn may use only so much; it can go on from here.")
        case _state, "context":
            return _("The answer filled what was left of the model's window.")
        case _:
            return ""


def describe_rate_limit(recorded: str) -> str:
    """Return the limit a minute that a turn has recorded to wait for, in words; "" for none."""
    if not recorded:
        return ""
    unit, amount, *model = recorded.split()
    text, limit = _("%(limit)s a minute"), show_amount(int(amount), unit)
    if model:
        text = _("%(limit)s a minute for %(model)s")
    return text % {"limit": limit, "model": name_scope("".join(model))}


def explain_not_sent(period: str, model: str = "") -> str:
    """Return why a message is not accepted: the budget is not enough for an answer.

    `model` is the name of the model or family that the budget counts alone.
    """
    if period == "minute":
        return _("Not sent: no answer fits in %(limit)s. Your message is kept here.") % {
            "limit": budget_name(period, model)
        }
    text = _(
        "Not sent: what is left %(of_budget)s is not enough for an answer. Your message is kept"
        " here."
    ) % {"of_budget": of_budget(period, model)}
    return text + " " + _("Choose another model or wait.") if model else text
