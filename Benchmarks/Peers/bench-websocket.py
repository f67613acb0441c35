"""The package `websockets`, with BenchKit's cases, options and output."""

import asyncio
import json
import os
import resource
import sys
import time

import websockets


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024


async def echo(socket, count, message, in_flight):
    for _ in range(min(count, in_flight)):
        await socket.send(message)
    to_send = count - min(count, in_flight)
    for _ in range(count):
        if len(await socket.recv()) != len(message):
            raise SystemExit("not an echo")
        if to_send:
            to_send -= 1
            await socket.send(message)


def connect(url):
    return websockets.connect(url, compression=None, ping_interval=None)


async def main(case, url, count=10_000, warmup=0, inflight=64, connections=64, size=64, **_):
    if case == "idle":
        sockets = [await connect(url)]
        before, begin = resident(), cpu()
        while len(sockets) <= connections:
            sockets += await asyncio.gather(*(connect(url) for _ in range(min(inflight, connections + 1 - len(sockets)))))
        used = cpu() - begin
        print(json.dumps({"cpu": used, "rss_kib": resident(), "kib_per_socket": (resident() - before) / connections}), flush=True)
        os._exit(0)
    begin, start = cpu(), time.monotonic()
    async with connect(url) as socket:
        if case == "echo":
            await echo(socket, warmup, bytes(size), inflight)
            begin, start = cpu(), time.monotonic()
            await echo(socket, count, bytes(size), inflight)
        else:
            await socket.send(b"")
            for _ in range(count):
                if len(await socket.recv()) != size:
                    raise SystemExit("wrong size")
        used = cpu() - begin
        print(json.dumps({"wall": time.monotonic() - start, "cpu": used, "echoes_per_cpu_s": count / used,
                          "peak_rss_kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}), flush=True)


resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
asyncio.run(main(*sys.argv[1:3], **{key: int(value) for key, value in (word.split("=") for word in sys.argv[3:])}))
