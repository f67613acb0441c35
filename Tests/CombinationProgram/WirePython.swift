// SPDX-License-Identifier: Apache-2.0

/// The program behind a ``WirePeer``.
///
/// Its arguments are two PEM files, each with a chain and its key: of a trusted certificate and of an untrusted one.
enum WirePython {
    static let program = #"""
        import base64, json, socket, ssl, struct, sys, threading

        def context(path):
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            return context

        good, strange = context(sys.argv[1]), context(sys.argv[2])
        rows = {}

        class Gone(Exception):
            pass

        def read_line(channel):
            line = b""
            while not line.endswith(b"\r\n"):
                byte = channel.recv(1)
                if not byte:
                    raise Gone
                line += byte
            return line.decode("utf-8", "replace").strip()

        def drain(channel):
            while channel.recv(65536):
                pass

        def end(channel):
            """Says farewell, and waits for the client's."""
            if isinstance(channel, ssl.SSLSocket):
                channel = channel.unwrap()
            channel.shutdown(socket.SHUT_WR)
            drain(channel)

        def raw(channel):
            return socket.socket(fileno=channel.detach()) if isinstance(channel, ssl.SSLSocket) else channel

        def reset(channel):
            channel = raw(channel)
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            channel.close()

        class Row:
            def __init__(self, order):
                self.order, self.change = order, threading.Condition()
                self.content = base64.b64decode(order["content"])
                self.told, self.leaks, self.stored = [], [], None
                self.open, self.has_stood, self.stands, self.may_pass, self.is_over = 0, False, False, False, False
                self.context = strange if order["isStrange"] else good
                self.listener = socket.create_server(("127.0.0.1", 0), backlog=16)
                self.port = self.listener.getsockname()[1]
                threading.Thread(target=self.accept, daemon=True).start()

            def set(self, **values):
                with self.change:
                    self.__dict__.update(values)
                    self.change.notify_all()

            def wait(self, condition):
                with self.change:
                    self.change.wait_for(lambda: condition() or self.is_over)

            def accept(self):
                while True:
                    try:
                        channel, _ = self.listener.accept()
                    except OSError:
                        return
                    channel.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    self.set(open=self.open + 1)
                    threading.Thread(target=self.guard, args=(channel,), daemon=True).start()

            def guard(self, channel):
                talk = Talk(self, channel)
                try:
                    talk.stream() if self.order["kind"] == "stream" else talk.ftp()
                except (Gone, OSError):
                    pass
                talk.leave()
                with self.change:
                    self.open -= 1
                    self.change.notify_all()

            def stand(self, moment):
                if self.order["gate"] != moment or self.has_stood:
                    return
                self.set(has_stood=True, stands=True)
                self.wait(lambda: self.may_pass)

            def close(self):
                self.set(is_over=True)
                self.listener.shutdown(socket.SHUT_RDWR)
                self.listener.close()

            def sight(self):
                return {"port": self.port, "told": self.told, "leaks": self.leaks,
                        "stored": None if self.stored is None else base64.b64encode(self.stored).decode()}

        class Talk:
            """One connection, and those for its data."""

            def __init__(self, row, channel):
                self.row, self.channel, self.channels, self.listener = row, channel, [channel], None
                self.tls, self.ending = row.order["tls"], row.order["end"]
                self.is_secure, self.is_private = False, False

            def leave(self):
                for channel in self.channels + [self.listener]:
                    if channel:
                        channel.close()

            def secured(self, channel):
                secure = self.row.context.wrap_socket(channel, server_side=True)
                self.channels.append(secure)
                return secure

            def secure(self):
                self.channel, self.is_secure = self.secured(self.channel), True

            def note(self, text):
                self.row.told.append(text)
                if self.tls != "none" and not self.is_secure:
                    self.row.leaks.append(text)

            def say(self, text):
                self.channel.sendall(text.encode() + b"\r\n")

            def send(self, channel):
                """The content, and the end of its connection."""
                content, half = self.row.content, len(self.row.content) // 2
                channel.sendall(content[:half])
                self.row.stand("within")
                if self.ending == "reset":
                    reset(channel)
                    raise Gone
                if self.ending == "silence":
                    drain(self.channel)
                    raise Gone
                if self.ending != "cutData":
                    channel.sendall(content[half:])
                if self.ending == "ragged":
                    channel = raw(channel)
                    self.channels.append(channel)
                    channel.shutdown(socket.SHUT_WR)
                    drain(channel)
                else:
                    end(channel)

            def stream(self):
                if self.tls == "later" and read_line(self.channel) != "STARTTLS":
                    raise Gone
                if self.tls == "none":
                    # Without TLS, the client sends its greeting first.
                    self.note(read_line(self.channel))
                self.row.stand("greeting")
                if self.tls == "later":
                    self.say("220 go")
                if self.tls != "none":
                    self.secure()
                    self.note(read_line(self.channel))
                self.send(self.channel)

            def data(self):
                channel, _ = self.listener.accept()
                self.channels.append(channel)
                return self.secured(channel) if self.is_private else channel

            def take(self):
                """What is uploaded; false where it is refused."""
                channel = self.data()
                self.row.stand("within")
                if self.ending == "reset":
                    reset(channel)
                    reset(self.channel)
                    raise Gone
                if self.ending == "cutData":
                    channel.recv(1000)
                    return False
                content = b""
                while True:
                    piece = channel.recv(65536)
                    if not piece:
                        break
                    content += piece
                self.row.stored = content
                if self.ending == "silence":
                    drain(self.channel)
                    raise Gone
                if self.ending == "ragged":
                    raw(channel).close()
                    return True
                try:
                    end(channel)
                except OSError:
                    # The client has sent everything.
                    pass
                return True

            def ftp(self):
                self.row.stand("greeting")
                if self.tls == "atOnce":
                    self.secure()
                self.say("220 ready")
                user = ""
                while True:
                    word, _, rest = read_line(self.channel).partition(" ")
                    if word == "AUTH" and self.tls == "later":
                        self.say("234 go")
                        self.secure()
                    elif word == "PROT":
                        self.is_private = rest == "P"
                        self.say("200 fine")
                    elif word == "USER":
                        user = rest
                        self.say("331 and the password?")
                    elif word == "PASS":
                        login = user if user == "anonymous" else user + ":" + rest
                        self.note(login)
                        self.say("230 come in" if self.row.order["isOpenToAll"] or login == "ada:secret" else "530 no")
                    elif word in ("TYPE", "OPTS", "PBSZ"):
                        self.say("200 fine")
                    elif word == "CWD":
                        self.say("250 fine")
                    elif word == "PWD":
                        self.say('257 "/"')
                    elif word == "SIZE":
                        content = self.row.content if rest == "doc" else self.row.stored
                        self.say("550 no" if content is None else "213 %d" % len(content))
                    elif word == "MDTM":
                        self.say("213 20200202020202")
                    elif word == "EPSV":
                        self.listener = socket.create_server(("127.0.0.1", 0))
                        self.say("229 (|||%d|)" % self.listener.getsockname()[1])
                    elif word in ("RETR", "LIST", "STOR"):
                        self.say("150 go")
                        is_fine = True
                        if word == "STOR":
                            is_fine = self.take()
                        else:
                            self.send(self.data())
                        if self.ending == "noReply":
                            return
                        self.say("226 done" if is_fine else "426 cut")
                    elif word == "QUIT":
                        self.say("221 bye")
                        return end(self.channel)
                    else:
                        self.say("502 not here")

        def obey(connection):
            order = json.loads(connection.makefile("rb").readline())
            row = rows.get(order.get("port"))
            if order["do"] == "open":
                row = Row(order)
                rows[row.port] = row
            elif order["do"] == "reached":
                row.wait(lambda: row.stands)
            elif order["do"] == "pass":
                row.set(may_pass=True)
            elif order["do"] == "ended":
                row.wait(lambda: not row.open)
            elif order["do"] == "close":
                row.close()
                del rows[row.port]
            connection.sendall(json.dumps(row.sight()).encode())
            connection.close()

        listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        print(listener.getsockname()[1], flush=True)
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=obey, args=(connection,), daemon=True).start()
        """#
}
