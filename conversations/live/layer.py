"""The channel layer of channels_redis, with pipelining: many messages in one round trip.

`group_send` waits for Redis' reply to each message before it sends the next. A busy event loop
reads that reply late, so with many running answers messages would queue up in their process.
Its receiver looks for a message ten times a second, in every process and also when nothing is said;
here it waits until one comes. Both use private attributes of channels_redis, which
tests/live/test_relay.py checks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from channels_redis.pubsub import RedisPubSubChannelLayer, RedisSingleShardConnection

#: Seconds that the receiver waits for a message before it looks again.
WAITS = 60.0


class PipelinedLayer(RedisPubSubChannelLayer):  # type: ignore[misc]  # it has no types
    """Publish and subscribe on one Redis host."""

    def _get_layer(self) -> Any:
        layer = super()._get_layer()
        [shard] = layer._shards
        if not isinstance(shard, _PatientConnection):
            layer._shards = [_PatientConnection(shard.host, layer)]
        return layer

    async def group_send_many(self, messages: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Send to groups, in order; raises Redis' errors, after which some may have been sent."""
        if len(messages) == 1:
            # A pipeline costs twice as much as what it carries.
            await self.group_send(*messages[0])
            return
        layer = self._get_layer()
        [shard] = layer._shards
        async with shard._lock:
            shard._ensure_redis()
            async with shard._redis.pipeline(transaction=False) as pipeline:
                for group, message in messages:
                    name = layer._get_group_channel_name(group)
                    pipeline.publish(name, self.serialize(message))
                await pipeline.execute()


class _PatientConnection(RedisSingleShardConnection):  # type: ignore[misc]  # it has no types
    """A connection whose receiver waits for its messages."""

    def _ensure_redis(self) -> None:
        if self._redis is None:
            super()._ensure_redis()
            receive = self._pubsub.get_message
            self._pubsub.get_message = lambda **wanted: receive(**wanted | {"timeout": WAITS})
