"""Parameters that depend on the model: output length, sampling, thinking, effort."""

from __future__ import annotations

from agentweb.emulator import json_codec
from agentweb.emulator.call import Call
from agentweb.emulator.errors import Invalid
from agentweb.emulator.model_catalogue import Model

_USE_ADAPTIVE = (
    'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.'
)
#: With this header a request in a batch may ask for so many tokens of output.
LONG_OUTPUT_BETA, LONG_OUTPUT = "output-300k-2026-03-24", 300_000
_EFFORTS = ("low", "medium", "high", "xhigh", "max")


def check_max_tokens(call: Call) -> None:
    asked, most = call.body["max_tokens"], call.model.max_output
    if call.is_batched and LONG_OUTPUT_BETA in call.betas:
        most = max(most, LONG_OUTPUT)
    if asked > most:
        raise Invalid(
            f"max_tokens: {asked} > {most}, which is the maximum allowed "
            f"number of output tokens "
            f"for {call.model.id}"
        )
    if asked == 0:
        _check_prewarm(call.body)


def _check_prewarm(body: json_codec.Object) -> None:
    config = body.get("thinking") or {}
    for wrong, what in (
        (body.get("stream"), "stream: true"),
        (config.get("type") == "enabled", "thinking enabled"),
        ((body.get("output_config") or {}).get("format"), "output_config.format"),
        ((body.get("tool_choice") or {}).get("type") in {"any", "tool"}, "a forced tool_choice"),
    ):
        if wrong:
            raise Invalid(f"max_tokens: 0 cannot be combined with {what}")


def check_sampling(body: json_codec.Object, model: Model) -> None:
    given = [name for name in ("temperature", "top_p", "top_k") if body.get(name) is not None]
    if given and not model.sampling:
        raise Invalid(f"`{given[0]}` is deprecated for this model.")
    if "temperature" in given and "top_p" in given:
        raise Invalid(
            "`temperature` and `top_p` cannot both be specified for this model. Please "
            "use only one."
        )


def check_stop_sequences(body: json_codec.Object) -> None:
    for text in body.get("stop_sequences") or ():
        if not text.strip():
            wanted = "contain non-whitespace" if text else "be non-empty"
            raise Invalid(f"stop_sequences: each stop sequence must {wanted}")


def check_place_and_speed(body: json_codec.Object, model: Model) -> None:
    """Refuse a region for older models, and fast mode for models without it."""
    if body.get("inference_geo") is not None and not model.regional:
        raise Invalid(f"'{model.id}' does not support inference_geo.")
    if body.get("speed") == "fast" and not model.fast_rate:
        raise Invalid(f"'{model.id}' does not support the `speed` parameter.")


def check_thinking(body: json_codec.Object, model: Model) -> None:
    config = body.get("thinking")
    if not config:
        return
    kind = config["type"]
    if kind not in model.thinking:
        if kind == "adaptive":
            raise Invalid("adaptive thinking is not supported on this model")
        raise Invalid(f'"thinking.type.{kind}" is not supported for this model. {_USE_ADAPTIVE}')
    effort = (body.get("output_config") or {}).get("effort") or model.default_effort
    is_off = kind in ("disabled", "between_tools")
    if is_off and _EFFORTS.index(effort) > _EFFORTS.index(model.disable_up_to):
        raise Invalid(
            f"output_config.effort '{effort}' is not supported when thinking is disabled on this"
            f" model. Use effort '{model.disable_up_to}' or below, or enable thinking."
        )
    if kind == "enabled":
        _check_budget(body, config)


def _check_budget(body: json_codec.Object, config: json_codec.Object) -> None:
    if "max_tokens" in body and body["max_tokens"] <= config["budget_tokens"]:
        raise Invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if body.get("temperature") not in (None, 1):
        raise Invalid("`temperature` may only be set to 1 when thinking is enabled.")
    if (body.get("tool_choice") or {}).get("type") in {"any", "tool"}:
        raise Invalid("Thinking may not be enabled when tool_choice forces tool use.")


def check_effort(body: json_codec.Object, model: Model) -> None:
    effort = (body.get("output_config") or {}).get("effort")
    if effort and effort not in model.efforts:
        raise Invalid(
            "This model does not support the effort parameter."
            if not model.efforts
            else f"This model does not support effort level '{effort}'. Supported levels:"
            f" {', '.join(sorted(model.efforts))}."
        )
