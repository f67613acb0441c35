// SPDX-License-Identifier: Apache-2.0

/// The program behind an ``HTTP2ScriptedServer``: it reads and writes HTTP/2 frames, and runs ``HTTP2Step``s.
///
/// The program encodes and decodes field blocks with the Python package hpack, which `Scripts/install-needs test` installs.
///
/// It listens on socket 3, reads one ``HTTP2Command`` per line from socket 4, and writes one ``HTTP2Event`` per line. Its
/// arguments, for TLS, are the PEM files of a certificate chain and its key, and the protocols for ALPN.
enum HTTP2Python {
    static let program = reading + writing

    /// The receiving part of the program.
    private static let reading = #"""
        import asyncio, base64, hashlib, json, os, socket, ssl, struct, sys, threading
        import hpack

        TYPES = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE",
                 "CONTINUATION"]
        DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
        ACK, END_STREAM, END_HEADERS, PADDED, PRIORITIZED = 1, 1, 4, 8, 32
        TABLE_SIZE, ENABLE_PUSH, CONCURRENT_STREAMS, INITIAL_WINDOW, FRAME_SIZE, LIST_SIZE = range(1, 7)
        CONNECT_PROTOCOL = 8
        PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        CONNECTION_FIELDS = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}
        KEPT = 1 << 16

        def tell(event, **values):
            os.write(1, json.dumps({"event": event, **values}).encode() + b"\n")

        def text(data):
            return base64.b64encode(data).decode()

        class Violation(Exception):
            pass

        class Gates:
            """The gates that tests open, and the scripts that wait for them."""

            def __init__(self):
                self.opened, self.waiting = set(), {}

            def open(self, name):
                self.opened.add(name)
                for future in self.waiting.pop(name, []):
                    if not future.done():
                        future.set_result(None)

            async def pass_(self, name):
                if name not in self.opened:
                    future = asyncio.get_running_loop().create_future()
                    self.waiting.setdefault(name, []).append(future)
                    await future

        class Stream:
            """A request: what was received of it, and how much may be sent."""

            def __init__(self, number, window, credit):
                self.number, self.window, self.credit = number, window, credit
                self.fields, self.length, self.expected, self.body, self.hash = [], 0, None, b"", hashlib.sha256()
                self.ending = self.ended = self.answered = self.reset = self.cancelled = False

            @property
            def open(self):
                return not self.reset and not (self.ended and self.answered)

        class Connection(asyncio.Protocol):
            def __init__(self, server):
                self.server, self.number = server, server.count
                server.count += 1
                server.connections[self.number] = self
                self.transport = self.tls = self.protocol = None
                self.ready, self.drained = asyncio.Event(), asyncio.Event()
                self.drained.set()
                self.waiters, self.scripts = [], set()
                self.buffer, self.opened, self.greeted, self.is_http2, self.closed = bytearray(), False, False, None, False
                self.said_goodbye, self.preface = False, None
                self.encoder, self.decoder = hpack.Encoder(), hpack.Decoder()
                self.decoder.max_header_list_size = 1 << 20
                self.streams, self.highest, self.block, self.frames = {}, 0, None, []
                self.theirs = {TABLE_SIZE: 4096, INITIAL_WINDOW: 65535, FRAME_SIZE: 16384}
                self.ours = {CONCURRENT_STREAMS: 1 << 31, INITIAL_WINDOW: 65535, FRAME_SIZE: 16384}
                self.offered, self.is_raw = [], False
                self.window, self.credit = 65535, 65535
                self.policy = {"ackSettings": True, "ackPings": True, "credit": True}

            # Channel events

            def connection_made(self, transport):
                self.transport = transport
                transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                transport.pause_reading()
                tell("accepted", connection=self.number)

            def begin(self, steps):
                self.perform(self.greet_with(steps))
                if self.server.context is None:
                    self.ready.set()
                else:
                    self.inward, self.outward = ssl.MemoryBIO(), ssl.MemoryBIO()
                    self.tls = self.server.context.wrap_bio(self.inward, self.outward, server_side=True)
                self.transport.resume_reading()

            def data_received(self, data):
                try:
                    if self.tls is None:
                        return self.receive(data)
                    self.inward.write(data)
                    if not self.ready.is_set():
                        self.shake()
                    while self.ready.is_set():
                        try:
                            clear = self.tls.read(1 << 16)
                        except ssl.SSLWantReadError:
                            break
                        except ssl.SSLZeroReturnError:
                            clear = b""
                        self.flush()
                        if not clear:
                            return self.ending("close_notify")
                        self.receive(clear)
                except ssl.SSLError as error:
                    self.ending("tls", str(error))
                    self.transport.abort()

            def shake(self):
                try:
                    self.tls.do_handshake()
                    self.protocol = self.tls.selected_alpn_protocol()
                    tell("secured", connection=self.number, protocol=self.protocol, name=self.server.names.pop(self.tls, None))
                    self.ready.set()
                except ssl.SSLWantReadError:
                    pass
                finally:
                    self.flush()

            def flush(self):
                data = self.outward.read()
                if data and not self.transport.is_closing():
                    self.transport.write(data)

            def pause_writing(self):
                self.drained.clear()

            def resume_writing(self):
                self.drained.set()

            def eof_received(self):
                self.ending("eof")
                return True

            def ending(self, how, why=""):
                """The client closed its sending side: the server closes the connection, unless its script has more to send."""
                tell("ending", connection=self.number, how=how, text=why)
                if not self.policy.get("lingers"):
                    self.transport.close()

            def connection_lost(self, error):
                self.closed = True
                for script in list(self.scripts):
                    script.cancel()
                tell("closed", connection=self.number, how="reset" if isinstance(error, ConnectionResetError) else "")

            # What the client sends

            def receive(self, data):
                self.buffer += data
                if not self.opened:
                    return
                try:
                    if not self.greeted and not self.greet():
                        return
                    if not self.is_http2:
                        return self.receive_http1()
                    while len(self.buffer) >= 9:
                        length = int.from_bytes(self.buffer[:3], "big")
                        if length > self.ours[FRAME_SIZE]:
                            raise Violation(f"a frame of {length} bytes (RFC 9113, section 4.2)")
                        if len(self.buffer) < 9 + length:
                            return
                        kind, flags, stream = struct.unpack(">BBL", self.buffer[3:9])
                        payload = bytes(self.buffer[9:9 + length])
                        del self.buffer[:9 + length]
                        self.take(kind, flags, stream & 0x7FFFFFFF, payload)
                except (Violation, hpack.HPACKError) as error:
                    tell("violation", connection=self.number, text=f"{type(error).__name__}: {error}")
                    self.buffer.clear()
                    self.transport.abort()

            def greet(self):
                head = bytes(self.buffer[:len(PREFACE)])
                if head == PREFACE:
                    del self.buffer[:len(PREFACE)]
                    self.greeted = self.is_http2 = True
                    if self.preface is not None:
                        self.send(SETTINGS, 0, 0, self.preface)
                elif not PREFACE.startswith(head):
                    if self.protocol == "h2":
                        raise Violation("no connection preface (RFC 9113, section 3.4)")
                    self.greeted, self.is_http2 = True, False
                return self.greeted

            def receive_http1(self):
                """Reads an HTTP/1.1 request, with a Content-Length or without a body."""
                while b"\r\n\r\n" in self.buffer:
                    head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
                    lines = [line.partition(":") for line in head.decode("latin-1").split("\r\n")[1:]]
                    fields = [[name.lower(), value.strip()] for name, _, value in lines]
                    length = int(dict(fields).get("content-length", 0))
                    if len(rest) < length:
                        return
                    self.buffer = bytearray(rest[length:])
                    method, path, _ = head.decode("latin-1").split("\r\n")[0].split(" ", 2)
                    fields = [[":method", method], [":path", path]] + fields
                    tell("request", connection=self.number, stream=0, fields=fields, open=1)
                    self.tell_end(0, rest[:length], length, hashlib.sha256(rest[:length]), [])

            def tell_end(self, stream, body, length, digest, trailers):
                tell("end", connection=self.number, stream=stream, length=length, sha256=digest.hexdigest(),
                     body=text(body[:KEPT]), fields=trailers)

            def take(self, kind, flags, number, payload):
                if not self.frames and (kind != SETTINGS or flags & ACK):
                    raise Violation("the first frame is not SETTINGS (RFC 9113, section 3.4)")
                if self.block and (kind != CONTINUATION or number != self.block[0]):
                    raise Violation("a field block is interrupted (RFC 9113, section 4.3)")
                entry = {"type": kind, "flags": flags, "stream": number, "length": len(payload)}
                self.frames.append(entry)
                more = getattr(self, "take_" + TYPES[kind].lower())(flags, number, payload) if kind < len(TYPES) else None
                tell("frame", connection=self.number, **{**entry, **(more or {})})
                if kind in (HEADERS, CONTINUATION) and self.block and flags & END_HEADERS:
                    self.take_fields(*self.block)
                if kind in (DATA, HEADERS, CONTINUATION) and number in self.streams:
                    self.end(self.streams[number])
                self.wake()

            def unpadded(self, flags, payload):
                if not flags & PADDED:
                    return payload
                if payload[0] >= len(payload):
                    raise Violation("more padding than payload (RFC 9113, section 6.1)")
                return payload[1:len(payload) - payload[0]]

            def take_data(self, flags, number, payload):
                stream = self.streams.get(number)
                if stream is None or stream.ended or stream.cancelled:
                    raise Violation(f"DATA on stream {number}, which is not open (RFC 9113, section 6.1)")
                self.credit -= len(payload)
                stream.credit -= len(payload)
                if self.credit < 0 or (stream.credit < 0 and not stream.reset):
                    raise Violation(f"DATA beyond the window of stream {number} (RFC 9113, section 6.9.1)")
                data = self.unpadded(flags, payload)
                stream.length += len(data)
                stream.hash.update(data)
                stream.body += data[:KEPT - len(stream.body)]
                stream.ending = bool(flags & END_STREAM)
                if self.policy["credit"] and payload:
                    increment = struct.pack(">L", len(payload))
                    self.send(WINDOW_UPDATE, 0, 0, increment)
                    if not stream.ending and not stream.reset:
                        self.send(WINDOW_UPDATE, 0, number, increment)

            def take_headers(self, flags, number, payload):
                block = self.unpadded(flags, payload)
                if flags & PRIORITIZED:
                    block = block[5:]
                self.block = [number, flags & END_STREAM, block]

            def take_continuation(self, flags, number, payload):
                if not self.block:
                    raise Violation("CONTINUATION without HEADERS (RFC 9113, section 6.10)")
                self.block[2] += payload

            def take_fields(self, number, ends, block):
                self.block = None
                pairs = self.decoder.decode(block, raw=True)
                fields = [[name.decode("latin-1"), value.decode("utf-8", "replace")] for name, value in pairs]
                stream = self.streams.get(number)
                if stream:
                    if stream.ended or not ends or any(name.startswith(":") for name, _ in fields):
                        raise Violation(f"HEADERS on stream {number} that are not trailers (RFC 9113, section 8.1)")
                    stream.fields = fields
                else:
                    if number % 2 == 0 or number <= self.highest:
                        raise Violation(f"a new stream {number} after {self.highest} (RFC 9113, section 5.1.1)")
                    self.highest = number
                    stream = self.streams[number] = Stream(number, self.theirs[INITIAL_WINDOW], self.ours[INITIAL_WINDOW])
                    stream.expected = dict(fields).get("content-length")
                    count = sum(other.open for other in self.streams.values())
                    if count > self.ours[CONCURRENT_STREAMS]:
                        raise Violation(f"{count} streams at once (RFC 9113, section 5.1.2)")
                    self.check(fields)
                    tell("request", connection=self.number, stream=number, fields=fields, open=count)
                stream.ending = ends

            def check(self, fields):
                names = [name for name, _ in fields]
                pseudo = [name for name in names if name.startswith(":")]
                method = dict(fields).get(":method")
                extended = method == "CONNECT" and ":protocol" in pseudo
                if extended and not self.ours.get(CONNECT_PROTOCOL):
                    raise Violation("CONNECT with a protocol that was not allowed (RFC 8441, section 4)")
                wanted = {":method", ":authority"} if method == "CONNECT" and not extended else {":method", ":scheme", ":path"}
                known = wanted | {":authority"} | ({":protocol"} if extended else set())
                if names[:len(pseudo)] != pseudo or len(set(pseudo)) < len(pseudo) or not wanted <= set(pseudo) <= known:
                    raise Violation(f"pseudo-header fields {names} (RFC 9113, section 8.3)")
                for name, value in fields:
                    if name != name.lower() or name in CONNECTION_FIELDS or (name == "te" and value != "trailers"):
                        raise Violation(f"a field {name}: {value} (RFC 9113, section 8.2)")
                    if value != value.strip(" \t") or any(character in value for character in "\r\n\0"):
                        raise Violation(f"a value of {name} (RFC 9113, section 8.2.1)")

            def end(self, stream):
                if stream.ending and not stream.ended:
                    stream.ended = True
                    if stream.expected not in (None, str(stream.length)) and not stream.reset:
                        raise Violation(f"{stream.length} bytes for {stream.expected} (RFC 9113, section 8.1.1)")
                    self.tell_end(stream.number, stream.body, stream.length, stream.hash, stream.fields)

            def take_rst_stream(self, flags, number, payload):
                if number not in self.streams or len(payload) != 4:
                    raise Violation(f"RST_STREAM of stream {number} (RFC 9113, section 6.4)")
                self.streams[number].reset = self.streams[number].cancelled = True
                return {"code": int.from_bytes(payload, "big")}

            def take_settings(self, flags, number, payload):
                if number or len(payload) % 6 or (flags & ACK and payload):
                    raise Violation("SETTINGS (RFC 9113, section 6.5)")
                if flags & ACK:
                    if not self.offered and self.is_raw:
                        return
                    if not self.offered:
                        raise Violation("an acknowledgment of SETTINGS that were not sent (RFC 9113, section 6.5.3)")
                    self.apply(self.offered.pop(0))
                    return
                values = [list(struct.unpack(">HL", payload[at:at + 6])) for at in range(0, len(payload), 6)]
                for key, value in values:
                    if key == INITIAL_WINDOW:
                        for stream in self.streams.values():
                            stream.window += value - self.theirs[INITIAL_WINDOW]
                    if key == TABLE_SIZE:
                        self.encoder.header_table_size = min(value, 4096)
                    self.theirs[key] = value
                if self.policy["ackSettings"]:
                    self.send(SETTINGS, ACK, 0, b"")
                return {"settings": values}

            def apply(self, values):
                """Applies the server's settings when the client has acknowledged them."""
                for key, value in values:
                    if key == INITIAL_WINDOW and value < self.ours[INITIAL_WINDOW]:
                        for stream in self.streams.values():
                            stream.credit += value - self.ours[INITIAL_WINDOW]
                    if key == TABLE_SIZE:
                        self.decoder.max_allowed_table_size = value
                    self.ours[key] = value

            def take_ping(self, flags, number, payload):
                if number or len(payload) != 8:
                    raise Violation("PING (RFC 9113, section 6.7)")
                if not flags & ACK and self.policy["ackPings"]:
                    self.send(PING, ACK, 0, payload)
                return {"data": text(payload)}

            def take_goaway(self, flags, number, payload):
                last, code = struct.unpack(">LL", payload[:8])
                return {"code": code, "last": last, "data": text(payload[8:])}

            def take_window_update(self, flags, number, payload):
                increment = int.from_bytes(payload, "big")
                stream = self.streams.get(number)
                if not increment or (number and not stream):
                    raise Violation(f"WINDOW_UPDATE of stream {number} by {increment} (RFC 9113, section 6.9)")
                target = stream if number else self
                target.window += increment
                if target.window > 0x7FFFFFFF:
                    raise Violation(f"a window of {target.window} bytes (RFC 9113, section 6.9.1)")
                return {"increment": increment}

        """#
}
