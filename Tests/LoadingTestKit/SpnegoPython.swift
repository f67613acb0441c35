// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Two programs in Python that use the package pyspnego (NTLM and SPNEGO), which `Scripts/install-needs test` installs.
enum SpnegoPython {
    /// Writes the users in pyspnego's format; returns the environment in which pyspnego finds them.
    static func write(_ users: [String: String], domain: String, in directory: ServerDirectory) throws -> [String: String] {
        let lines = users.map { "\(domain):\($0):\($1)\n" }
        let file = try directory.write(lines.joined().utf8, to: "ntlm.users")
        return ["NTLM_USER_FILE": file.path]
    }

    static func interpreter() throws -> String {
        try ServerProcess.buildFolderProgram("python/bin/python3")
    }

    /// An HTTP server on the listening socket 3, which keeps the authenticated user of each connection.
    ///
    /// Arguments: the PEM files of a certificate chain and its key, for TLS.
    static let server = #"""
        import base64, hashlib, http.server, itertools, os, socket, ssl, sys, time
        import spnego
        from spnego.channel_bindings import GssChannelBindings

        numbers = itertools.count(1)
        offers = {"ntlm": ["NTLM"], "both": ["Negotiate", "NTLM"], "closing": ["NTLM"],
                  "bound": ["NTLM"], "ntlm-or-basic": ["NTLM", 'Basic realm="ntlm"']}
        binding = None

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def setup(self):
                super().setup()
                self.number, self.context, self.user = next(numbers), None, ""

            def log_message(self, *arguments):
                pass

            def body(self):
                if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length") or 0))
                body = b""
                while True:
                    size = int(self.rfile.readline().split(b";")[0], 16)
                    body += self.rfile.read(size)
                    self.rfile.readline()
                    if not size:
                        return body

            def reply(self, status, text, challenges=(), closes=False):
                data = text.encode()
                self.send_response(status)
                for challenge in challenges:
                    self.send_header("WWW-Authenticate", challenge)
                self.send_header("Content-Type", "text/plain; charset=utf-8")
                self.send_header("Content-Length", str(len(data)))
                self.send_header("X-User", self.user.encode().decode("latin-1"))
                self.send_header("X-Connection", str(self.number))
                if closes:
                    self.send_header("Connection", "close")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)
                self.wfile.flush()

            def serve(self):
                body = self.body()
                place = self.path.split("/")[1].split("?")[0]
                page = f"{self.command} {self.path} {len(body)} {hashlib.sha256(body).hexdigest() if body else '-'}"
                header = self.headers.get("Authorization")
                if place not in offers or (self.user and not header):
                    return self.reply(200, page)
                schemes = offers[place]
                scheme, _, value = (header or "").partition(" ")
                if scheme == "Basic" and len(schemes) > 1 and "Basic" in schemes[1]:
                    user, _, password = base64.b64decode(value).decode().partition(":")
                    lines = open(os.environ["NTLM_USER_FILE"]).read().split("\n")
                    if any(line.split(":", 1)[1:] == [f"{user}:{password}"] for line in lines):
                        self.user = user
                        self.reply(200, page)
                        self.user = ""
                        return
                elif scheme in schemes and value:
                    self.user = ""
                    try:
                        return self.leg(scheme, base64.b64decode(value), place, page)
                    except Exception as error:
                        print(f"{scheme} on {self.number}: {error}", flush=True)
                self.context = None
                self.reply(401, "who are you?", schemes, closes=place == "closing")

            def leg(self, scheme, token, place, page):
                if self.context is None or self.context.complete:
                    self.context = spnego.server(
                        hostname="localhost", service="HTTP", protocol=scheme.lower(),
                        channel_bindings=binding if place == "bound" else None)
                answer = self.context.step(token)
                challenge = [scheme + " " + base64.b64encode(answer).decode()] if answer else []
                if not self.context.complete:
                    return self.reply(401, "continue", challenge)
                self.user = self.context.client_principal
                self.reply(200, page, challenge)

            do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address):
                pass

        server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = socket.socket(fileno=3)
        server.server_address = server.socket.getsockname()
        server.server_name, server.server_port = "localhost", server.server_address[1]
        if len(sys.argv) > 2:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(sys.argv[1], sys.argv[2])
            leaf = open(sys.argv[1]).read().split("-----END")[0] + "-----END CERTIFICATE-----\n"
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(leaf)).digest()
            binding = GssChannelBindings(application_data=b"tls-server-end-point:" + digest)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        server.serve_forever()

        """#

    /// Verifies NTLM for squid on the listening socket 3: one connection for each helper, one line per message, in squid's helper
    /// protocol.
    static let judge = #"""
        import base64, socket, socketserver
        import spnego

        class Handler(socketserver.StreamRequestHandler):
            def handle(self):
                context = None
                for line in self.rfile:
                    kind, _, value = line.decode().strip().partition(" ")
                    try:
                        if kind == "YR":
                            context = spnego.server(hostname="localhost", service="HTTP", protocol="ntlm")
                        answer = context.step(base64.b64decode(value))
                        if context.complete:
                            reply = "AF " + context.client_principal
                        else:
                            reply = "TT " + base64.b64encode(answer).decode()
                    except Exception as error:
                        reply = "NA " + str(error).replace("\n", " ")
                    self.wfile.write(reply.encode() + b"\n")

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True

        server = Server(("127.0.0.1", 0), Handler, bind_and_activate=False)
        server.socket.close()
        server.socket = socket.socket(fileno=3)
        server.serve_forever()

        """#
}
