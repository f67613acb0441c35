// SPDX-License-Identifier: Apache-2.0

extension HTTP2Python {
    /// The sending part of the program: the rest of the class `Connection`, and the main program.
    static let writing = #"""
            # What the server sends

            def write(self, data):
                if self.transport.is_closing() or self.said_goodbye:
                    return
                if self.tls:
                    for at in range(0, len(data), 1 << 16):
                        self.tls.write(data[at:at + (1 << 16)])
                    self.flush()
                else:
                    self.transport.write(data)

            def send(self, kind, flags, number, payload, length=None):
                """Sends a frame, and records how it changes what the client may do."""
                stream = self.streams.get(number)
                if kind in (DATA, HEADERS) and flags & END_STREAM and stream:
                    stream.answered = True
                if kind == RST_STREAM and stream:
                    stream.reset = True
                if kind == WINDOW_UPDATE and len(payload) == 4:
                    increment = int.from_bytes(payload, "big")
                    if stream:
                        stream.credit += increment
                    elif not number:
                        self.credit += increment
                if kind == SETTINGS and not flags & ACK and not number and len(payload) % 6 == 0:
                    values = [struct.unpack(">HL", payload[at:at + 6]) for at in range(0, len(payload), 6)]
                    for key, value in values:
                        if key == INITIAL_WINDOW and value > self.ours[INITIAL_WINDOW]:
                            for other in self.streams.values():
                                other.credit += value - self.ours[INITIAL_WINDOW]
                            self.ours[INITIAL_WINDOW] = value
                        if key == FRAME_SIZE:
                            self.ours[FRAME_SIZE] = max(value, self.ours[FRAME_SIZE])
                    self.offered.append(values)
                size = len(payload) if length is None else length
                self.write(size.to_bytes(3, "big") + struct.pack(">BBL", kind, flags, number) + payload)

            def wake(self):
                for condition, future in list(self.waiters):
                    if not future.done() and condition():
                        future.set_result(None)
                self.waiters = [waiter for waiter in self.waiters if not waiter[1].done()]

            async def until(self, condition):
                if not condition():
                    future = asyncio.get_running_loop().create_future()
                    self.waiters.append((condition, future))
                    await future

            # Scripts

            def perform(self, work):
                script = asyncio.ensure_future(work)
                self.scripts.add(script)
                script.add_done_callback(self.done)

            def done(self, script):
                self.scripts.discard(script)
                if not script.cancelled() and script.exception() and not self.closed:
                    tell("error", text=f"connection {self.number}: {script.exception()!r}")

            async def greet_with(self, steps):
                """Runs the first steps; the client's bytes are read once these are done, or wait for something."""
                for step in steps:
                    if step["do"].startswith(("await", "gate", "pause", "repeat", "stall")):
                        self.look()
                    await self.run([step], None)
                self.look()

            def look(self):
                if not self.opened:
                    self.opened = True
                    self.receive(b"")

            async def run(self, steps, number):
                for step in steps:
                    target = step.get("stream", number)
                    await getattr(self, "do_" + step["do"])(step, target)

            async def can_write(self):
                """Waits until the socket can accept data; waits forever if the connection is closing."""
                await self.ready.wait()
                await self.drained.wait()
                if self.transport.is_closing():
                    await asyncio.get_running_loop().create_future()

            async def do_policy(self, step, number):
                self.policy[step["name"]] = step["on"]

            async def do_preface(self, step, number):
                self.preface = base64.b64decode(step["bytes"])

            async def do_raw(self, step, number):
                await self.can_write()
                self.is_raw = True
                self.write(base64.b64decode(step["bytes"]))

            async def do_frame(self, step, number):
                await self.can_write()
                self.send(step["type"], step["flags"], number or 0, base64.b64decode(step["bytes"]), step.get("length"))

            async def do_headers(self, step, number):
                """Sends a field section in one or more frames."""
                await self.can_write()
                if "bytes" in step:
                    block = base64.b64decode(step["bytes"])
                else:
                    fields = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in step["fields"]]
                    block = self.encoder.encode(fields, huffman=step.get("huffman", True))
                size = min(step.get("size", self.theirs[FRAME_SIZE]), self.theirs[FRAME_SIZE])
                parts = [block[at:at + size] for at in range(0, len(block), size)] or [b""]
                for index, part in enumerate(parts):
                    flags = END_STREAM if step.get("ends") and not index else 0
                    flags |= END_HEADERS if index == len(parts) - 1 else 0
                    self.send(HEADERS if not index else CONTINUATION, flags, number, part)

            async def do_data(self, step, number):
                """Sends repeated bytes within the client's flow control windows."""
                stream, piece = self.streams[number], base64.b64decode(step["bytes"])
                sent, total = 0, len(piece) * step["count"]
                padding = b"" if step.get("size") is None else bytes([step["size"]])
                extra = len(padding) + sum(padding)
                while sent < total and not stream.reset:
                    await self.can_write()
                    room = min(self.window, stream.window, self.theirs[FRAME_SIZE], 16384) - extra
                    if room <= 0:
                        tell("blocked", connection=self.number, stream=number, length=sent)
                        await self.until(lambda: min(self.window, stream.window) > extra or stream.reset)
                        continue
                    at = sent % len(piece)
                    part = piece[at:at + room]
                    self.window -= len(part) + extra
                    stream.window -= len(part) + extra
                    sent += len(part)
                    flags = (END_STREAM if step["ends"] and sent == total else 0) | (PADDED if padding else 0)
                    self.send(DATA, flags, number, padding + part + bytes(sum(padding)))
                if step["ends"] and not total and not stream.reset:
                    await self.can_write()
                    self.send(DATA, END_STREAM, number, b"")

            async def do_repeat(self, step, number):
                for _ in range(step["count"]):
                    await self.run(step["steps"], number)
                    await asyncio.sleep(0)

            async def do_awaitFrame(self, step, number):
                """Waits until the connection has received a number of frames with this type and these flags, on one or any stream."""
                kind, flags, stream = step["type"], step["flags"], step.get("stream")
                await self.told(lambda: sum(
                    frame["type"] == kind and frame["flags"] & flags == flags and stream in (None, frame["stream"])
                    for frame in self.frames) >= step["count"])

            async def do_awaitEnd(self, step, number):
                if self.is_http2:
                    await self.told(lambda: self.streams[number].ended or self.streams[number].reset)

            async def do_awaitBody(self, step, number):
                stream = self.streams[number]
                await self.told(lambda: stream.length >= step["count"] or stream.ended or stream.reset)

            async def do_awaitRequests(self, step, number):
                await self.told(lambda: len(self.streams) >= step["count"])

            async def told(self, condition):
                """Waits until a condition holds, and the test has processed all events up to then."""
                await self.until(condition)
                self.server.marks += 1
                name = f"mark {self.server.marks}"
                tell("mark", name=name)
                await self.server.gates.pass_(name)
                self.server.gates.opened.discard(name)

            async def do_gate(self, step, number):
                tell("reached", connection=self.number, name=step["name"])
                await self.server.gates.pass_(step["name"])

            async def do_reach(self, step, number):
                tell("reached", connection=self.number, name=step["name"])

            async def do_pause(self, step, number):
                await asyncio.sleep(step["count"] / 1000)

            async def do_stall(self, step, number):
                await asyncio.get_running_loop().create_future()

            async def do_stopReading(self, step, number):
                self.policy["deaf"] = True
                self.transport.pause_reading()

            async def do_startReading(self, step, number):
                self.policy["deaf"] = False
                self.transport.resume_reading()

            async def do_close(self, step, number):
                await self.can_write()
                self.say_goodbye()
                self.transport.close()

            async def do_closeAbruptly(self, step, number):
                self.transport.close()

            async def do_shutdownOutput(self, step, number):
                """Closes the sending side when everything is written, and continues to read."""
                await self.can_write()
                self.policy["lingers"] = True
                self.say_goodbye()
                self.transport.write_eof()

            async def do_reset(self, step, number):
                raw = self.transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.transport.abort()

            def say_goodbye(self):
                self.said_goodbye = True
                if self.tls:
                    try:
                        self.tls.unwrap()
                    except ssl.SSLError:
                        pass
                    self.flush()

        class Server:
            def __init__(self, arguments):
                self.count, self.marks, self.connections, self.names, self.gates = 0, 0, {}, {}, Gates()
                self.context = None
                if arguments:
                    chain, key, protocols = arguments
                    self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                    self.context.load_cert_chain(chain, key)
                    self.context.set_alpn_protocols(protocols.split(","))
                    self.context.sni_callback = lambda tls, name, context: self.names.update({tls: name})

            def obey(self, line):
                order = json.loads(line)
                connection = self.connections.get(order.get("connection"))
                if order["do"] == "open":
                    self.gates.open(order["name"])
                elif order["do"] == "stopListening":
                    self.listener.close()
                elif order["do"] == "begin":
                    connection.begin(order["steps"])
                elif not connection.closed:
                    connection.perform(connection.run(order["steps"], order.get("stream")))

            def listen(self, loop, end):
                """Reads orders on a separate thread, so that their sender never waits."""
                for line in os.fdopen(4, "rb"):
                    loop.call_soon_threadsafe(self.obey, line)
                loop.call_soon_threadsafe(end.set)

            async def serve(self):
                loop, end = asyncio.get_running_loop(), asyncio.Event()
                self.listener = await loop.create_server(lambda: Connection(self), sock=socket.socket(fileno=3), backlog=1024)
                threading.Thread(target=self.listen, args=(loop, end), daemon=True).start()
                await end.wait()

        asyncio.run(Server(sys.argv[1:]).serve())

        """#
}
