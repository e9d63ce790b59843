"""The channel layer of channels_redis, with pipelining: many messages in one round trip.

`group_send` waits for Redis' reply to each message before it sends the next. A busy event loop
reads that reply late, so with many running answers messages would queue up in their process. It
uses private attributes of channels_redis, which tests/live/test_relay.py checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer


class PipelinedLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # it has no types
    """Publish and subscribe on one Redis host."""

    async def group_send_many(self, messages: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Send to groups, in order; raises Redis' errors, after which some may have been sent."""
        layer = self._get_layer()
        [shard] = layer._shards
        async with shard._lock:
            shard._ensure_redis()
            async with shard._redis.pipeline(transaction=False) as pipeline:
                for group, message in messages:
                    name = layer._get_group_channel_name(group)
                    pipeline.publish(name, self.serialize(message))
                await pipeline.execute()
