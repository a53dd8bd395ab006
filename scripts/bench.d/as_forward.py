"""Lets a client that knows no proxies use a forward proxy, as if it were a reverse proxy.

usage: as_forward.py LISTEN PROXY ORIGIN, each as HOST:PORT

Of each request it changes the target, which becomes a URL of the origin, and Host. All other bytes pass unchanged, in
both directions, interim responses included. A request's content must have a Content-Length.
"""

import asyncio
import sys

HEAD_MAX = 64 * 1024


async def main(listen, proxy, origin):
    async def serve(reader, writer):
        await connection(reader, writer, proxy, origin)

    server = await asyncio.start_server(serve, *address(listen), limit=HEAD_MAX)
    await server.serve_forever()


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


async def connection(client, to_client, proxy, origin):
    """One connection of the client, and its own to the proxy. When either ends, both do."""
    try:
        upstream, to_upstream = await asyncio.open_connection(*address(proxy))
    except OSError as error:
        to_client.close()
        sys.exit(f"as_forward.py: no connection to the proxy at {proxy}: {error}")
    directions = {
        asyncio.ensure_future(requests(client, to_upstream, origin)),
        asyncio.ensure_future(responses(upstream, to_client)),
    }
    done, pending = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
    for direction in pending:
        direction.cancel()
    to_client.close()
    to_upstream.close()
    for direction in done:
        error = direction.exception()
        if error and not isinstance(error, (OSError, asyncio.IncompleteReadError)):
            raise error


async def requests(client, to_upstream, origin):
    while True:
        head = (await client.readuntil(b"\r\n\r\n")).decode("latin-1")
        head, length = rewritten(head, origin)
        to_upstream.write(head.encode("latin-1"))
        to_upstream.write(await client.readexactly(length))
        await to_upstream.drain()


async def responses(upstream, to_client):
    while data := await upstream.read(HEAD_MAX):
        to_client.write(data)
        await to_client.drain()


def rewritten(head, origin):
    """The head for a forward proxy, and the length of the content that follows it."""
    first, *fields = head.removesuffix("\r\n\r\n").split("\r\n")
    method, path, version = first.split(" ")
    lines, length = [f"{method} http://{origin}{path} {version}"], 0
    for field in fields:
        name, value = field.split(":", 1)
        if name.lower() == "transfer-encoding":
            raise NotImplementedError("a request in chunks")
        if name.lower() == "content-length":
            length = int(value)
        lines.append(f"{name}: {origin}" if name.lower() == "host" else field)
    return "\r\n".join(lines) + "\r\n\r\n", length


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
