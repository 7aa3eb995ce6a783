"""An S3 server on this machine, with a bucket for the state of a book."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

BUCKET: Final = "books"
_KEYS: Final = {
    "AWS_ACCESS_KEY_ID": "any",
    "AWS_SECRET_ACCESS_KEY": "any",  # pragma: allowlist secret  # moto checks no key
    "AWS_DEFAULT_REGION": "us-east-1",
}


@contextmanager
def serve_objects() -> Iterator[tuple[dict[str, str], Any]]:
    """Start an S3 server with a bucket, and yield the settings of a state there and a client."""
    import boto3  # type: ignore[import-untyped]  # noqa: PLC0415  # slow to import
    from moto.server import ThreadedMotoServer  # noqa: PLC0415  # the same
    from s3fs import S3FileSystem  # noqa: PLC0415  # the same

    S3FileSystem.clear_instance_cache()  # they have the address of an earlier server
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # it logs each request
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        url = f"http://{host}:{port}"
        os.environ |= _KEYS
        client = boto3.client("s3", endpoint_url=url)
        client.create_bucket(Bucket=BUCKET)
        state = {"AWS_ENDPOINT_URL": url, "STATE_URL": f"s3://{BUCKET}/state"}
        yield {**_KEYS, **state}, client
    finally:
        server.stop()
