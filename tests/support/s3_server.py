"""An S3 on loopback that is not ours (moto), for the storage of the extra `storages`."""

from __future__ import annotations

import functools
from typing import Any
from uuid import uuid4

from tests.support import servers

#: Whatever they are, they are accepted.
_LOGIN = {"access_key": "key", "secret_key": "secret"}


@functools.cache
def start() -> str:
    """Start it on first use; return its URL."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", servers.free_port(), verbose=False)
    server.start()
    servers.at_end(server.stop)
    host, port = server.get_host_and_port()
    return f"http://{host}:{port}"


def make_options() -> dict[str, Any]:
    """Create a bucket; return the options of `storages.backends.s3.S3Storage` for it."""
    import boto3

    url, name, region = start(), f"files-{uuid4().hex}", "us-east-1"
    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name=region,
        aws_access_key_id=_LOGIN["access_key"],
        aws_secret_access_key=_LOGIN["secret_key"],
    )
    client.create_bucket(Bucket=name)
    return {"bucket_name": name, "endpoint_url": url, "region_name": region, **_LOGIN}
