// SPDX-License-Identifier: Apache-2.0

extension UploadServer {
    static let program = #"""
        import itertools, json, os, select, signal, socket, ssl, struct, sys, threading

        plan = json.load(open(sys.argv[1]))
        place = sys.argv[2]
        lock = threading.RLock()
        uploads = {}
        # The pipe becomes readable when all held requests are released.
        released, release = os.pipe()
        numbers = itertools.count()

        class Cut(Exception):
            pass

        class Upload:
            def __init__(self, number):
                self.number, self.size, self.complete = number, 0, False
                # The connection that appends to the upload; only one at a time.
                self.busy, self.writer = threading.Lock(), None
                self.name = os.path.join(place, f"upload-{number}")
                open(self.name, "wb").close()

            def append(self, data):
                with open(self.name, "r+b") as file:
                    file.seek(self.size)
                    file.write(data)
                self.size += len(data)

            def forget(self, count):
                self.size = max(0, self.size - count)
                os.truncate(self.name, self.size)

            def finish(self):
                self.complete = True
                open(os.path.join(place, f"complete-{self.number}"), "wb").close()

        def fault(method):
            with lock:
                for index, one in enumerate(plan["faults"]):
                    if one["method"] == method:
                        return plan["faults"].pop(index)
            return {}

        class Connection:
            def __init__(self, peer):
                self.peer, self.buffer = peer, b""

            def line(self):
                while b"\r\n" not in self.buffer:
                    self.more()
                line, self.buffer = self.buffer.split(b"\r\n", 1)
                return line.decode("latin-1")

            def more(self):
                data = self.peer.recv(65536)
                if not data:
                    raise EOFError
                self.buffer += data

            def take(self, count):
                if not self.buffer:
                    self.more()
                data, self.buffer = self.buffer[:count], self.buffer[count:]
                return data

            def content(self, fields):
                if "chunked" in fields.get("transfer-encoding", ""):
                    while (left := int(self.line().split(";")[0], 16)) > 0:
                        while left:
                            data = self.take(left)
                            left -= len(data)
                            yield data
                        self.line()
                    self.line()
                    return
                left = int(fields.get("content-length", 0))
                while left:
                    data = self.take(left)
                    left -= len(data)
                    yield data

            def send(self, status, fields=(), body=b""):
                head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields)
                self.peer.sendall(head.encode("latin-1") + b"\r\n" + body)

            def reset(self):
                self.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.peer.close()

            def hold(self, seen, upload):
                seen["offset"], seen["isHeld"] = upload.size if upload else 0, True
                self.note(seen)
                poll = select.poll()
                poll.register(self.peer, select.POLLRDHUP)
                poll.register(released, select.POLLIN)
                if any(end != released for end, _ in poll.poll()):
                    raise EOFError

            def note(self, seen):
                with lock:
                    line = json.dumps({name: value for name, value in seen.items() if name != "upload"})
                    with open(os.path.join(place, "requests"), "a") as file:
                        file.write(line + "\n")
                    print(line, flush=True)

            def serve(self):
                try:
                    if isinstance(self.peer, ssl.SSLSocket):
                        self.peer.do_handshake()
                    while True:
                        self.request()
                except Cut:
                    self.reset()
                except (EOFError, ConnectionError, OSError):
                    self.peer.close()

            def request(self):
                method, target, _ = self.line().split(" ", 2)
                path = "/" + target.split("/", 3)[3] if target.startswith("http://") else target
                fields = {}
                while line := self.line():
                    name, value = line.split(":", 1)
                    fields[name.lower()] = value.strip()
                seen = {"number": next(numbers), "method": method, "path": path, "target": target, "fields": fields,
                        "received": 0, "offset": 0}
                self.seen = seen
                upload = uploads.get(path)
                try:
                    if self.is_of_another_version(path, fields):
                        self.refuse(method, fields)
                    else:
                        self.answer(method, path, fields, seen, upload, fault(method))
                finally:
                    self.note_end()

            def note_end(self):
                # Before the response is sent, because a test that has it may read the journal.
                seen, self.seen = self.seen, None
                if seen is None:
                    return
                upload = uploads.get(seen["path"]) or seen.get("upload")
                seen["offset"] = upload.size if upload else 0
                self.note(seen)

            def state(self, upload):
                complete = ("Upload-Incomplete", "?0" if upload.complete else "?1") if plan.get("version") == 3 else (
                    "Upload-Complete", "?1" if upload.complete else "?0")
                return [complete, ("Upload-Offset", str(upload.size))]

            def version(self):
                return [("Upload-Draft-Interop-Version", str(plan["version"]))] if plan.get("version") else []

            def limits(self):
                return [("Upload-Limit", plan["limits"])] if plan.get("limits") else []

            def final(self, method, status, fields=(), body=b"", fault={}):
                if "status" in fault:
                    status, body = fault["status"], fault.get("body", "").encode()
                    fields = [tuple(field) for field in fault["fields"]] if "fields" in fault else fields
                if fault.get("silent"):
                    raise Cut
                fields = list(fields)
                if status != 204:
                    fields.append(("Content-Length", str(len(body))))
                self.note_end()
                self.send(status, fields, b"" if method == "HEAD" else body)

            def place(self, where):
                return (plan.get("location") or where).replace("{port}", str(self.peer.getsockname()[1]))

            def drain(self, fields, seen):
                for data in self.content(fields):
                    seen["received"] += len(data)

            def answer(self, method, path, fields, seen, upload, fault):
                if fault.get("refuses"):
                    self.drain(fields, seen)
                    return self.final(method, fault["status"], fault=fault)
                if upload is not None and upload.writer not in (None, self):
                    # The earlier request is terminated ("Concurrency").
                    try:
                        upload.writer.peer.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
                    with upload.busy:
                        pass
                if "holds" in fault and method in ("HEAD", "DELETE"):
                    self.hold(seen, upload)
                if upload is not None and method == "HEAD":
                    return self.final(method, 204, self.version() + self.state(upload) + self.limits(), fault=fault)
                if upload is not None and method == "DELETE":
                    with lock:
                        del uploads[path]
                    return self.final(method, 204, self.version(), fault=fault)
                if path.startswith(plan["place"]) and method == "PATCH" and upload is not None:
                    offset = int(fields.get("upload-offset", -1))
                    if offset != upload.size:
                        self.drain(fields, seen)
                        return self.final(method, 409, self.version() + self.state(upload), fault=fault)
                    return self.take_content(method, fields, seen, upload, fault)
                if path.startswith(plan["place"]):
                    self.drain(fields, seen)
                    return self.final(method, 404, self.version(), fault=fault)
                if method == "OPTIONS":
                    self.drain(fields, seen)
                    return self.final(method, 204 if plan.get("options") else 405, [tuple(field) for field in plan.get("options") or []])
                asks = "upload-complete" in fields or "upload-incomplete" in fields
                with lock:
                    seen["upload"] = upload = Upload(len([n for n in os.listdir(place) if n.startswith("upload-")]) + 1)
                where = plan["place"] + str(upload.number)
                if plan["knowsUploads"] and asks:
                    uploads[where] = upload
                    if not fault.get("mute"):
                        for _ in range(plan["announcements"]):
                            self.send(104, self.version() + [("Location", self.place(where))] + self.limits())
                self.take_content(method, fields, seen, upload, fault, where if asks and plan["knowsUploads"] else None)

            def is_of_another_version(self, path, fields):
                stated = fields.get("upload-draft-interop-version")
                return plan["knowsUploads"] and not path.startswith(plan["place"]) and plan.get("version") and stated not in (
                    None, str(plan["version"]))

            def refuse(self, method, fields):
                for _ in self.content(fields):
                    pass
                self.final(method, 400, self.version())

            def take_content(self, method, fields, seen, upload, fault, where=None):
                with upload.busy:
                    upload.writer = self
                    try:
                        self.append(fields, seen, upload, fault)
                    finally:
                        upload.writer = None
                self.answer_content(method, fields, upload, fault, where)

            def append(self, fields, seen, upload, fault):
                told = upload.size
                for data in self.content(fields):
                    if "cut" in fault and seen["received"] + len(data) >= fault["cut"]:
                        data = data[:fault["cut"] - seen["received"]]
                        upload.append(data)
                        seen["received"] += len(data)
                        upload.forget(fault.get("loses", 0))
                        raise Cut
                    upload.append(data)
                    seen["received"] += len(data)
                    if "isHeld" not in seen and seen["received"] >= fault.get("holds", sys.maxsize):
                        self.hold(seen, upload)
                    step = plan.get("progressStep")
                    if step and upload.size - told >= step:
                        told = upload.size
                        self.send(104, self.version() + [("Upload-Offset", str(upload.size))])
                upload.forget(fault.get("loses", 0))

            def answer_content(self, method, fields, upload, fault, where):
                is_last = fields.get("upload-complete", "?1") == "?1" and fields.get("upload-incomplete", "?0") == "?0"
                location = [("Location", where)] if where else []
                if is_last and not fault.get("loses"):
                    upload.finish()
                    answer = self.version() + (self.state(upload)[:1] if where or "upload-offset" in fields else [])
                    return self.final(method, plan["status"], answer, f"stored {upload.size}".encode(), fault)
                self.final(method, 201 if where else 204, self.version() + location + self.state(upload) + self.limits(), fault=fault)

        def main():
            listener = socket.socket(fileno=3)
            signal.signal(signal.SIGUSR1, lambda *_: os.write(release, b"."))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER) if len(sys.argv) > 3 else None
            if context:
                context.load_cert_chain(sys.argv[3], sys.argv[4])
            while True:
                peer, _ = listener.accept()
                if context:
                    peer = context.wrap_socket(peer, server_side=True, do_handshake_on_connect=False)
                threading.Thread(target=Connection(peer).serve, daemon=True).start()

        main()
        """#
}
