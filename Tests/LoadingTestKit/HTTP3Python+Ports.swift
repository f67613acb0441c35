// SPDX-License-Identifier: Apache-2.0

extension HTTP3Python {
    /// The rest of a connection, the UDP ports, and the main program.
    static let ports = #"""
            def forge(self, order):
                """Sends a datagram that anyone, or only the server, can make."""
                kind = order["kind"]
                token = self.peer._host_cids[0].stateless_reset_token
                sender = self.server.elsewhere if order.get("elsewhere") else self.server.transport
                if kind == "raw":
                    data = [base64.b64decode(order["bytes"])]
                elif kind == "versions":
                    data = [packet.encode_quic_version_negotiation(
                        source_cid=self.chosen, destination_cid=self.client, supported_versions=order["versions"])]
                elif kind == "retry":
                    one = packet.encode_quic_retry(
                        version=self.version, source_cid=os.urandom(8), destination_cid=self.client,
                        original_destination_cid=self.chosen, retry_token=os.urandom(32))
                    data = [one if order["valid"] else one[:-1] + bytes([one[-1] ^ 1])]
                elif kind == "reset":
                    data = [bytes([0x40 | os.urandom(1)[0] & 0x3F]) + os.urandom(40) + (token if order["valid"] else os.urandom(16))]
                elif kind == "replay":
                    data = list(self.first)
                for one in data * order.get("times", 1):
                    sender.sendto(one, self.address)

            # The client's side

            def datagram(self, data, address):
                if self.peer is None:
                    self.waiting.append((data, address))
                elif self.closed:
                    # The first words about the end may be lost.
                    if self.last and self.words < LAST_WORDS:
                        self.words += 1
                        for one in self.last:
                            self.server.transport.sendto(one, address)
                elif not self.muted:
                    self.address = address
                    try:
                        self.peer.receive_datagram(data, address, now=self.server.loop.time())
                        self.take_events()
                        self.transmit()
                    except Exception as error:
                        self.tell(PROBLEM, 0, f"{type(error).__name__}: {error}".encode())

            def send(self):
                sent = self.peer.datagrams_to_send(now=self.server.loop.time())
                if len(self.first) < 4:
                    self.first += [data for data, _ in sent]
                for data, address in sent:
                    self.server.transport.sendto(data, address)
                return sent

            def transmit(self):
                peer, loop = self.peer, self.server.loop
                if self.closed or self.muted or not peer._network_paths:
                    return
                self.settle()
                sent = self.send()
                if peer.frames and sent:
                    loop.call_soon(self.transmit)
                if peer._close_event:
                    self.last = [data for data, _ in sent]
                    return self.leave(peer._close_event)
                at = peer.get_timer()
                if self.timer:
                    self.timer.cancel()
                self.timer = loop.call_at(at, self.wake) if at is not None else None

            def wake(self):
                self.timer = None
                if not self.closed and not self.muted:
                    self.peer.handle_timer(now=self.server.loop.time())
                    self.take_events()
                    self.transmit()

            def settle(self):
                """Returns credit for what the client has acknowledged, and ends what has waited for that."""
                for number in list(self.owed):
                    stream = self.peer._streams.get(number)
                    if stream is None:
                        del self.owed[number]
                        continue
                    done = stream.sender._buffer_start - self.owed[number]
                    if done > 0:
                        self.owed[number] += done
                        self.tell(CREDIT, number, struct.pack(">Q", done))
                for number in list(self.resets):
                    stream = self.peer._streams.get(number)
                    if stream is None or self.is_delivered(stream):
                        self.peer.reset_stream(number, self.resets.pop(number))
                if self.ending and (self.ending.get("now") or all(map(self.is_delivered, self.peer._streams.values()))):
                    self.peer.close(self.ending["code"], self.ending.get("frame"), self.ending.get("reason", ""))

            @staticmethod
            def is_delivered(stream):
                sender = stream.sender
                return sender.is_finished or sender._reset_error_code is not None or (
                    sender._buffer_start == sender._buffer_stop and (sender._buffer_fin is None or sender._acked_fin))

            def take_events(self):
                while (event := self.peer.next_event()) is not None:
                    self.take(event)
                if self.http and self.http._is_done and not self.told and self.peer._close_event:
                    self.told = True
                    end = self.peer._close_event
                    self.tell(PROBLEM, 0, f"the client violates RFC 9114: {end.error_code:#x} {end.reason_phrase}".encode())

            def take(self, event):
                if isinstance(event, events.ProtocolNegotiated):
                    self.http = HTTP3(self.peer, not self.peer.options.get("manual"))
                    known = {"protocol": event.alpn_protocol, "name": self.peer.name}
                    self.tell(SECURED, 0, json.dumps(known).encode())
                    if "closes" in self.peer.options:
                        self.peer.close(self.peer.options["closes"], packet.QuicFrameType.CRYPTO)
                elif isinstance(event, events.HandshakeCompleted):
                    certificate = self.peer.tls._peer_certificate
                    self.tell(CONFIRMED, 0, certificate.public_bytes(Encoding.DER) if certificate else b"")
                    if self.peer.options.get("insists") and not certificate:
                        self.peer.close(CERTIFICATE_REQUIRED, packet.QuicFrameType.CRYPTO, "a certificate is required")
                elif isinstance(event, events.ConnectionIdIssued):
                    self.server.relays[event.connection_id] = self
                elif isinstance(event, events.ConnectionIdRetired):
                    self.server.relays.pop(event.connection_id, None)
                elif isinstance(event, (events.StreamDataReceived, events.StreamReset, events.StopSendingReceived)):
                    if isinstance(event, events.StreamDataReceived) and event.stream_id % 4 == 2 and self.tells:
                        self.tell(UNI, event.stream_id, event.data)
                    for one in self.http.handle_event(event) if self.http else []:
                        self.take_message(one)
                    if isinstance(event, events.StreamReset):
                        self.tell(RESET, event.stream_id, struct.pack(">Q", event.error_code))
                    if isinstance(event, events.StopSendingReceived):
                        self.tell(STOPPED, event.stream_id, struct.pack(">Q", event.error_code))

            def take_message(self, event):
                number = event.stream_id
                if isinstance(event, HeadersReceived) and number not in self.trailers:
                    self.trailers[number] = b""
                    self.owed[number] = 0
                    self.tell(HEAD, number, fields_of(event.headers))
                elif isinstance(event, HeadersReceived):
                    self.trailers[number] = fields_of(event.headers)
                elif event.data:
                    self.tell(CONTENT, number, event.data)
                if event.stream_ended:
                    self.tell(END, number, self.trailers[number])

            def leave(self, end=None):
                """The connection has ended."""
                if self.timer:
                    self.timer.cancel()
                self.closed = True
                if end:
                    facts = {"code": end.error_code, "frame": end.frame_type, "reason": end.reason_phrase}
                    self.tell(CLOSED, 0, json.dumps(facts).encode())
                if self.transport:
                    self.transport.close()
                # The connection IDs are kept for a while, because packets may still be under way.
                self.server.loop.call_later(3, self.server.forget, self)

        class Server(asyncio.DatagramProtocol):
            """A UDP port."""

            def __init__(self, loop, order):
                self.loop, self.order, self.relays, self.listens = loop, order, {}, True
                self.chains = [tls.load_pem_x509_certificates(one["chain"].encode()) for one in order["identities"]]
                self.keys = [tls.load_pem_private_key(one["key"].encode()) for one in order["identities"]]
                self.tokens = QuicRetryTokenHandler() if order.get("retry") else None

            async def bind(self):
                """Binds the UDP port, and the TCP port of the same number, which refuses connections."""
                address, wanted = self.order["address"], self.order.get("port", 0)
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                for attempt in range(50):
                    self.guard = socket.socket(family, socket.SOCK_STREAM)
                    port = wanted
                    if not wanted:
                        self.guard.bind((address, 0))
                        port = self.guard.getsockname()[1]
                    plain = socket.socket(family, socket.SOCK_DGRAM)
                    try:
                        plain.bind((address, port))
                        break
                    except OSError:
                        self.guard.close()
                        plain.close()
                        if attempt == 49:
                            raise
                plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
                self.transport, _ = await self.loop.create_datagram_endpoint(lambda: self, sock=plain)
                self.elsewhere, _ = await self.loop.create_datagram_endpoint(asyncio.DatagramProtocol, local_addr=(address, 0))
                tell("listening", server=self.order["server"], port=port)

            def close(self):
                for relay in set(self.relays.values()):
                    if relay.peer and not relay.closed:
                        relay.ending = {"code": NO_ERROR, "now": True}
                        relay.transmit()
                for one in (self.transport, self.elsewhere, self.guard):
                    one.close()

            def error_received(self, error):
                pass

            def forget(self, relay):
                self.relays = {name: one for name, one in self.relays.items() if one is not relay}

            def datagram_received(self, data, address):
                address = address[:2]
                try:
                    header = packet.pull_quic_header(Buffer(data=data), host_cid_length=8)
                except ValueError:
                    return
                relay = self.relays.get(header.destination_cid)
                if relay is None:
                    if header.packet_type != packet.QuicPacketType.INITIAL or len(data) < 1200:
                        return
                    relay = self.accept(header, address)
                    if relay is None:
                        return
                relay.datagram(data, address)

            def accept(self, header, address):
                if header.version not in self.order.get("versions", [1]):
                    return self.transport.sendto(packet.encode_quic_version_negotiation(
                        source_cid=header.destination_cid, destination_cid=header.source_cid,
                        supported_versions=self.order.get("versions", [1])), address)
                if not self.listens:
                    return self.refuse(header, address)
                relay = Relay(self, header, address)
                if self.tokens and not header.token:
                    source = os.urandom(8)
                    return self.transport.sendto(packet.encode_quic_retry(
                        version=header.version, source_cid=source, destination_cid=header.source_cid,
                        original_destination_cid=header.destination_cid, retry_token=self.tokens.create_token(
                            address=address, original_destination_connection_id=header.destination_cid,
                            retry_source_connection_id=source, now=self.loop.time())), address)
                if self.tokens:
                    relay.original = self.tokens.validate_token(
                        address=address, destination_cid=header.destination_cid, token=header.token, now=self.loop.time())
                    relay.retried = header.destination_cid
                self.relays[header.destination_cid] = relay
                self.loop.create_task(self.join(relay, header, address))
                return relay

            async def join(self, relay, header, address):
                try:
                    await self.loop.create_unix_connection(lambda: relay, self.order["path"])
                except OSError:
                    self.refuse(header, address)
                    self.forget(relay)

            def refuse(self, header, address):
                """Closes a connection that does not exist (RFC 9000, section 20.1)."""
                crypto = CryptoPair()
                crypto.setup_initial(cid=header.destination_cid, is_client=False, version=header.version)
                builder = QuicPacketBuilder(host_cid=header.destination_cid, is_client=False, max_datagram_size=1200,
                                            peer_cid=header.source_cid, version=header.version)
                builder.start_packet(packet.QuicPacketType.INITIAL, crypto)
                frame = builder.start_frame(packet.QuicFrameType.TRANSPORT_CLOSE, capacity=32)
                for value in (REFUSED, 0, 0):
                    frame.push_uint_var(value)
                for data in builder.flush()[0]:
                    self.transport.sendto(data, address)

        class Orders(asyncio.Protocol):
            """The test's orders, one per line; the program ends with them."""

            def __init__(self, loop, end):
                self.loop, self.end, self.rest, self.servers = loop, end, b"", {}

            def data_received(self, data):
                *lines, self.rest = (self.rest + data).split(b"\n")
                for line in lines:
                    order = json.loads(line)
                    number = order["server"]
                    if order["do"] == "listen":
                        self.servers[number] = Server(self.loop, order)
                        self.loop.create_task(self.bind(number))
                    elif order["do"] == "stopListening":
                        self.servers[number].listens = False
                    elif order["do"] == "close":
                        self.servers.pop(number).close()

            async def bind(self, number):
                try:
                    await self.servers[number].bind()
                except Exception as error:
                    tell("error", server=number, text=repr(error))

            def connection_lost(self, error):
                self.end.set()

        async def serve():
            loop, end = asyncio.get_running_loop(), asyncio.Event()
            loop.set_exception_handler(lambda _, facts: tell("error", text=f"{facts.get('message')} {facts.get('exception')!r}"))
            await loop.create_connection(lambda: Orders(loop, end), sock=socket.socket(fileno=3))
            await end.wait()

        asyncio.run(serve())

        """#
}
