# The server of the examples that Scripts/snippets runs: a proxy on loopback that responds for every host, over TLS in a tunnel.

import http.server
import os
import socketserver
import ssl
import subprocess
import threading

ISO = bytes(range(256)) * 1024


def answer(method, path, headers, body):
    """The response of every host: status, header fields and body."""
    path = path.partition("?")[0]
    if path.endswith(".iso"):
        start = int(headers.get("Range", "bytes=0-")[6:].split("-")[0])
        fields = {"ETag": '"1"', "Accept-Ranges": "bytes"}
        if start:
            fields["Content-Range"] = f"bytes {start}-{len(ISO) - 1}/{len(ISO)}"
        return 206 if start else 200, fields, ISO[start:]
    if path == "/moved":
        return 301, {"Location": "/"}, b"moved"
    if path == "/me":
        return 200, {}, headers.get("Authorization", "nobody").encode()
    if path == "/login":
        known = headers.get("Authorization", "").startswith("Basic ")
        return (200, {}, b"hello") if known else (401, {"WWW-Authenticate": 'Basic realm="staff"'}, b"who?")
    if path == "/prices":
        return 200, {"Cache-Control": "max-age=600"}, b"1, 2, 3"
    if path == "/now":
        return 200, {}, b'{"temperature": -4.5}'
    if path == "/missing":
        return 404, {}, b"not found"
    if method in ("POST", "PUT"):
        return 200, {"Content-Type": headers.get("Content-Type", "")}, body
    return 200, {"Content-Type": "text/plain"}, b"first\nsecond\n"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 20
    context = None

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        try:
            self.connection = self.context.wrap_socket(self.connection, server_side=True)
        except OSError:
            self.close_connection = True
            return
        self.rfile = self.connection.makefile("rb", -1)
        self.wfile = self.connection.makefile("wb", 0)

    def do(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        status, fields, content = answer(self.command, self.path, self.headers, body)
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = do

    def log_message(self, *words):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        pass


def start(folder):
    """Starts the proxy, and returns it with the environment variables that make a program use and trust it."""
    certificate, key = os.path.join(folder, "certificate.pem"), os.path.join(folder, "key.pem")
    settings = os.path.join(folder, "openssl.cnf")
    with open(settings, "w", encoding="utf-8") as file:
        file.write("[req]\ndistinguished_name=name\nx509_extensions=extensions\nprompt=no\n[name]\nCN=example.com\n[extensions]\n"
                   "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\n"
                   "subjectAltName=DNS:example.com,DNS:*.example.com,DNS:www.swift.org\n")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-config", settings,
         "-keyout", key, "-out", certificate], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = Server(("127.0.0.1", 0), type("Handler", (Handler,), {"context": context}))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    return server, {"http_proxy": address, "https_proxy": address, "SSL_CERT_FILE": certificate}
