"""The channel layer of channels_redis, with a kept connection to send by and a patient receiver.

`group_send` takes a connection from redis-py's pool for each message, looks after it, and waits for
the reply before it sends the next: that takes several times as long as the message. Here one
connection is kept, and many messages are one write, so a busy event loop, which reads replies late,
does not queue messages up. The receiver of channels_redis looks for a message ten times a second,
in every process and also when nothing is said; here it waits until one comes. Both use private
attributes of channels_redis, which tests/live/test_relay.py checks.
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
        if not isinstance(shard, _KeptConnection):
            layer._shards = [_KeptConnection(shard.host, layer)]
        return layer

    async def group_send_many(self, messages: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Send to groups, in order; raises Redis' errors, after which some may have been sent.

        The caller limits the time.
        """
        layer = self._get_layer()
        [shard] = layer._shards
        await shard.publish_many(
            [
                ("PUBLISH", layer._get_group_channel_name(group), self.serialize(message))
                for group, message in messages
            ]
        )


class _KeptConnection(RedisSingleShardConnection):  # type: ignore[misc]  # it has no types
    """Its receiver waits for messages, and they are sent by one connection.

    Of its errors none is tried again: messages are best-effort, and the next one connects.
    """

    _sending: Any = None

    async def publish_many(self, commands: Sequence[tuple[str, str, bytes]]) -> None:
        async with self._lock:
            try:
                connection = await self._connect()
                await connection.send_packed_command(connection.pack_commands(commands))
                for _ in commands:
                    await connection.read_response()
            except BaseException:
                # Replies that are still to come are none of the next messages'.
                await self._disconnect()
                raise

    async def _connect(self) -> Any:
        """Return the connection to send by, a new one if it was closed while nothing was sent."""
        self._ensure_redis()
        if self._sending is not None and await self._sending.can_read():
            await self._disconnect()
        if self._sending is None:
            self._sending = self._redis.connection_pool.make_connection()
            # It would be a task and a timer for each message; the sender has a limit of its own.
            self._sending.socket_timeout = None
            # Sending connects, too, but asks no sentinel for the server.
            await self._sending.connect()
        return self._sending

    async def _disconnect(self) -> None:
        connection, self._sending = self._sending, None
        if connection is not None:
            await connection.disconnect(nowait=True)

    async def flush(self) -> None:
        async with self._lock:
            await self._disconnect()
        await super().flush()

    def _ensure_redis(self) -> None:
        if self._redis is None:
            super()._ensure_redis()
            receive = self._pubsub.get_message
            self._pubsub.get_message = lambda **wanted: receive(**wanted | {"timeout": WAITS})
