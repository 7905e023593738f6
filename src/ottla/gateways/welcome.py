"""`/`: what somebody sees who opens the port in a browser."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final

import ottla
from ottla.gateways.pages import Page
from ottla.server.doors import Visit

STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:42em;margin:3em auto;padding:0 1em}"
    "body{color:#222;background:#fff}"
    "pre{background:#f4f4f4;padding:.6em;overflow:auto}"
    "@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#262626}a{color:#8cf}}"
)
STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()

PAGE: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Ottla</title>
<style>{style}</style>
<h1>Ottla</h1>
<p>A Kafka-compatible broker, version {version}. This is broker {node_id} of cluster {cluster_id}, with
{topics} topics and {partitions} partitions here.
<p><a href="/health">Health</a> · <a href="/metrics">Metrics</a> · <a href="/subjects">Schemas</a>
<h2>Say hello</h2>
<p>This port speaks {offered}. Any Kafka client takes it as <code>bootstrap.servers={address}</code>.
<pre>ottla produce hello
printf 'PRODUCE hello key1 World\\nCONSUME hello 0 0\\n' | nc {host} {port}
grpcurl -plaintext -d '{{"topic":"hello","partition":0,"offset":0}}' {address} broker.Broker/Consume</pre>
"""


async def page(visit: Visit) -> Page:
    node = visit.doors.node
    connection = visit.connection
    host, port = connection.dialled_host, connection.dialled_port
    text = PAGE.format(
        style=STYLE,
        version=escape(ottla.__version__),
        node_id=node.node_id,
        cluster_id=escape(node.cluster_id),
        topics=len(node.image.topics),
        partitions=len(node.replicas),
        offered=escape(", ".join(sorted(visit.offered))),
        host=escape(host),
        port=port,
        address=escape(f"[{host}]:{port}" if ":" in host else f"{host}:{port}"),
    )
    policy = f"default-src 'none'; style-src 'sha256-{STYLE_HASH}'; base-uri 'none'; form-action 'none'"
    return Page(text, "text/html; charset=utf-8", headers=(("Content-Security-Policy", policy),))
