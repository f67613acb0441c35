// SPDX-License-Identifier: Apache-2.0

/// The program behind the HTTP/3 servers of the tests.
///
/// It speaks QUIC and reads HTTP/3 with the Python package aioquic, which `Scripts/install-needs test` installs. It opens and closes UDP
/// ports by a ``QUICOrder`` on each line of socket 3, and ends with that socket. For each QUIC connection to a port, it connects to a
/// Unix domain socket of the test, over which ``RelayedFrame``s go in both directions: what the client sends, and what the server sends
/// to it. The test decides about every byte of a stream.
enum HTTP3Python {
    static let program = connections + ports

    /// A connection, up to what the test commands.
    private static let connections = #"""
        import asyncio, base64, collections, ipaddress, itertools, json, os, socket, struct, sys
        from aioquic import tls
        from aioquic.buffer import Buffer
        from aioquic.h3 import connection as http3
        from aioquic.h3.events import DataReceived, HeadersReceived
        from aioquic.quic import connection as quic, events, packet
        from aioquic.quic.configuration import QuicConfiguration
        from aioquic.quic.crypto import CryptoPair
        from aioquic.quic.packet_builder import QuicPacketBuilder, QuicPacketBuilderStop
        from aioquic.quic.retry import QuicRetryTokenHandler
        from cryptography.hazmat.primitives.serialization import Encoding

        # What the test is told about a connection, and what it commands.
        SECURED, CONFIRMED, HEAD, CONTENT, END, RESET, STOPPED, CREDIT, UNI, CLOSED, PROBLEM = range(11)
        USE, WRITE, FINISH, DO_RESET, DO_STOP, CLOSE, ACT, FRAMES, DATAGRAM = range(9)
        PACKETS_AT_ONCE, LAST_WORDS, NO_ERROR, REFUSED, CERTIFICATE_REQUIRED = 8, 8, 0x100, 0x2, 0x174

        def tell(event, **values):
            os.write(1, json.dumps({"event": event, **values}).encode() + b"\n")

        def fields_of(headers):
            return b"".join(struct.pack(">L", len(part)) + part for field in headers for part in field)

        # A chain may be long.
        quic.CRYPTO_BUFFER_SIZE = 1 << 20

        class Unheard:
            """Takes the place of an encoder, because the test encodes field sections by itself."""

            def feed_decoder(self, data):
                pass

            def apply_settings(self, **settings):
                return b""

        class Listener:
            """A connection on which HTTP/3 sends nothing by itself."""

            def __init__(self, peer):
                self.peer = peer

            def __getattr__(self, name):
                return getattr(self.peer, name)

            def send_stream_data(self, *arguments):
                pass

        class HTTP3(http3.H3Connection):
            """The receiving side of HTTP/3; if it is not automatic, the test opens the server's control streams."""

            def __init__(self, peer, automatic):
                self.automatic = automatic
                super().__init__(peer if automatic else Listener(peer))
                if not automatic:
                    self._encoder = Unheard()

            def _init_connection(self):
                if self.automatic:
                    super()._init_connection()

            def _get_local_settings(self):
                settings = super()._get_local_settings()
                del settings[http3.Setting.ENABLE_CONNECT_PROTOCOL]
                return settings

        class Peer(quic.QuicConnection):
            """A QUIC connection with faults, and with flow control windows that follow what the test has taken."""

            def __init__(self, options, **rest):
                self.options, self.frames, self.deaf, self.name = options, collections.deque(), False, None
                super().__init__(**rest)
                self._local_max_streams_bidi.value = self._local_max_streams_bidi.sent = options.get("streams", 100)

            def _serialize_transport_parameters(self):
                data = Buffer(data=super()._serialize_transport_parameters())
                parameters = []
                while not data.eof():
                    parameters.append((data.pull_uint_var(), data.pull_bytes(data.pull_uint_var())))
                for number, value in self.options.get("parameters", []):
                    parameters = [one for one in parameters if one[0] != number]
                    if value is not None:
                        parameters.append((number, base64.b64decode(value)))
                out = Buffer(capacity=65536)
                for number, value in parameters:
                    out.push_uint_var(number)
                    out.push_uint_var(len(value))
                    out.push_bytes(value)
                return out.data + bytes(self.options.get("moreParameters", []))

            def _initialize(self, peer_cid):
                super()._initialize(peer_cid)
                if "selects" in self.options:
                    self.tls._alpn_protocols, self.tls.alpn_negotiated = None, self.options["selects"]
                self.tls._request_client_certificate = self.options.get("asks", False)
                handle = self.tls._server_handle_hello

                def look(hello, *buffers):
                    self.name = tls.pull_client_hello(Buffer(data=hello.data_slice(0, hello.capacity))).server_name
                    handle(hello, *buffers)

                self.tls._server_handle_hello = look

            def _write_application(self, builder, path, now):
                pair = self._cryptos[tls.Epoch.ONE_RTT]
                for _ in range(PACKETS_AT_ONCE if pair.send.is_valid() else 0):
                    if not self.frames:
                        break
                    frames, times = self.frames[0]
                    kind = Buffer(data=frames)
                    number = kind.pull_uint_var()
                    builder.start_packet(packet.QuicPacketType.ONE_RTT, pair)
                    try:
                        out = builder.start_frame(number, capacity=len(frames))
                    except QuicPacketBuilderStop:
                        break
                    out.push_bytes(frames[kind.tell():])
                    self.frames[0] = frames, times - 1
                    if times == 1:
                        self.frames.popleft()
                super()._write_application(builder, path, now)

            def _write_connection_limits(self, builder, space):
                data, window = self._local_max_data, self._configuration.max_data
                if not self.deaf and data.value - data.used < window // 2:
                    data.value = data.used + window
                used, data.used = data.used, 0
                try:
                    super()._write_connection_limits(builder, space)
                finally:
                    data.used = used

            def _write_stream_limits(self, builder, space, stream):
                if not stream.max_stream_data_local:
                    return
                top, window = stream.receiver.highest_offset, self._configuration.max_stream_data
                if not self.deaf and stream.max_stream_data_local - top < window // 2:
                    stream.max_stream_data_local = top + window
                stream.receiver.highest_offset = 0
                try:
                    super()._write_stream_limits(builder, space, stream)
                finally:
                    stream.receiver.highest_offset = top

        class Relay(asyncio.Protocol):
            """A QUIC connection, and the socket over which the test commands it."""

            def __init__(self, server, header, address):
                self.server, self.address, self.client, self.chosen = server, address, header.source_cid, header.destination_cid
                self.version, self.original, self.retried = header.version, header.destination_cid, None
                self.transport = self.peer = self.http = self.timer = self.ending = None
                self.waiting, self.buffer, self.closed, self.muted, self.first, self.words = [], bytearray(), False, False, [], 0
                self.owed, self.trailers, self.resets, self.last, self.tells, self.told = {}, {}, {}, [], False, False

            # The test's side

            def connection_made(self, transport):
                self.transport = transport
                transport.set_write_buffer_limits(high=1 << 18)

            def pause_writing(self):
                if self.peer:
                    self.peer.deaf = True

            def resume_writing(self):
                if self.peer:
                    self.peer.deaf = False
                    self.transmit()

            def data_received(self, data):
                self.buffer += data
                at = 0
                while len(self.buffer) - at >= 13:
                    size, kind, stream = struct.unpack_from(">LBQ", self.buffer, at)
                    if len(self.buffer) - at < 4 + size:
                        break
                    payload = bytes(self.buffer[at + 13:at + 4 + size])
                    at += 4 + size
                    try:
                        self.obey(kind, stream, payload)
                    except Exception as error:
                        self.tell(PROBLEM, 0, f"{type(error).__name__}: {error}".encode())
                del self.buffer[:at]
                if self.peer:
                    self.transmit()

            def connection_lost(self, error):
                """The test has closed the connection: what it wrote before is delivered first."""
                self.transport = None
                if self.peer is None:
                    self.server.forget(self)
                elif not self.ending:
                    self.ending = {"code": NO_ERROR}
                    self.transmit()

            def tell(self, kind, stream, payload=b""):
                if self.transport and not self.transport.is_closing():
                    self.transport.write(struct.pack(">LBQ", 9 + len(payload), kind, stream) + payload)

            def obey(self, kind, stream, payload):
                if kind == USE:
                    return self.use(json.loads(payload))
                if kind == DATAGRAM:
                    return self.server.transport.sendto(payload, self.address)
                if kind == ACT:
                    return self.act(json.loads(payload))
                if self.closed or self.peer._state in quic.END_STATES:
                    return
                if kind in (WRITE, FINISH):
                    known = self.peer._streams.get(stream)
                    if known is None and (stream % 4 == 0 or self.peer._stream_is_discarded(stream)):
                        return
                    if known and known.sender._reset_error_code is not None:
                        return
                    self.peer.send_stream_data(stream, payload, end_stream=kind == FINISH)
                    self.owed.setdefault(stream, 0)
                elif kind == DO_RESET:
                    code, waits = struct.unpack(">QB", payload)
                    if waits:
                        self.resets[stream] = code
                    else:
                        self.peer.reset_stream(stream, code)
                elif kind == DO_STOP:
                    if stream in self.peer._streams:
                        self.peer.stop_stream(stream, struct.unpack(">Q", payload)[0])
                elif kind == CLOSE:
                    self.ending = json.loads(payload)
                elif kind == FRAMES:
                    self.peer.frames.append((payload[4:], struct.unpack_from(">L", payload)[0]))

            def use(self, options):
                """Chooses the properties of the connection, and processes the datagrams that have waited for this."""
                certificate, *chain = self.server.chains[options["identity"]]
                configuration = QuicConfiguration(
                    is_client=False, alpn_protocols=options.get("protocols"), idle_timeout=options.get("idle", 30),
                    max_datagram_size=1400, max_data=options.get("maxData", 1 << 20),
                    max_stream_data=options.get("maxStreamData", 1 << 20), supported_versions=[packet.QuicProtocolVersion.VERSION_1],
                    certificate=certificate, certificate_chain=chain,
                    private_key=self.server.keys[options["identity"]])
                self.peer = Peer(options, configuration=configuration, original_destination_connection_id=self.original,
                                 retry_source_connection_id=self.retried)
                self.muted, self.tells = options.get("mute", False), options.get("tells", False)
                self.server.relays[self.peer.host_cid] = self
                for forgery in options.get("before", []):
                    self.forge(forgery)
                waiting, self.waiting = self.waiting, []
                for data, address in waiting:
                    self.datagram(data, address)

            def act(self, order):
                """Performs what is no command of a QUIC library."""
                kind = order["do"]
                if kind == "mute":
                    self.muted = order["on"]
                    if not self.muted:
                        self.transmit()
                elif kind == "deaf":
                    self.peer.deaf = order["on"]
                elif kind == "forget":
                    self.leave()
                elif kind == "updateKey":
                    self.peer.request_key_update()
                elif kind == "forge":
                    self.forge(order["datagram"])

        """#
}
