"""The channel layer, and one thing more: many messages in one round trip.

The layer's own way waits for Redis' answer to each message before it sends the next. A busy loop
comes to that answer late, so with many answers on their way words would queue up in their process.
What this uses of the layer's inside is held by tests/live/test_relay.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer


class PipelinedLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # it has no types
    """Redis' publish and subscribe on the one host there is."""

    async def group_send_many(self, messages: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        """Send to groups, in order; raises what Redis raises, some may have been sent then."""
        layer = self._get_layer()
        [shard] = layer._shards
        async with shard._lock:
            shard._ensure_redis()
            async with shard._redis.pipeline(transaction=False) as pipeline:
                for group, message in messages:
                    name = layer._get_group_channel_name(group)
                    pipeline.publish(name, self.serialize(message))
                await pipeline.execute()
