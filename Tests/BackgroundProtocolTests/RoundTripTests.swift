// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel
import Testing

@testable import BackgroundProtocol

@Suite struct RoundTripTests {
    /// The complete content of a value, including nested values and values that the description does not show.
    private static func dumped(_ value: Any) -> String {
        switch value {
        case let data as Data: return data.base64EncodedString()
        case let url as URL: return url.absoluteString
        case let credential as LoadCredential:
            guard case .identity(let identity) = credential.kind else {
                return "\(credential.user ?? "-") \(credential.password ?? "-") \(credential)"
            }
            return dumped([identity.privateKey] + identity.certificates) + "\(credential)"
        default: break
        }
        let mirror = Mirror(reflecting: value)
        guard mirror.displayStyle != nil, mirror.displayStyle != .enum || !mirror.children.isEmpty else { return "\(value)" }
        let children = mirror.children.map { "\($0.label ?? ""): \(dumped($0.value))" }
        let isOrdered = mirror.displayStyle != .dictionary && mirror.displayStyle != .set
        return "\(mirror.subjectType)(\((isOrdered ? children : children.sorted()).joined(separator: ", ")))"
    }

    /// The names of the fields in which two values are equal.
    private static func unchanged(_ value: Any, from other: Any) -> [String] {
        let (mirror, others) = (Mirror(reflecting: value), Mirror(reflecting: other))
        if let only = mirror.children.first, mirror.children.count == 1, ["box", "facts"].contains(only.label),
            let otherOnly = others.children.first
        {
            return unchanged(only.value, from: otherOnly.value)
        }
        return zip(mirror.children, others.children).filter { dumped($0.value) == dumped($1.value) }.map { $0.0.label ?? "" }
    }

    @Test func `the samples differ from the defaults in every field`() throws {
        // Only caches within the process use `sentFields`.
        #expect(Self.unchanged(try Samples.request(), from: LoadRequest(url: nil)) == ["sentFields"])
        // The engine has dealt with a server that asks to negotiate TLS again.
        #expect(Self.unchanged(try Samples.error(), from: LoadError(.unknown, "")) == ["asksToRenegotiate"])
        // No background session uses FTP. The daemon chooses retries and trust roots. Observers stay in the process, and exist
        // only with traits.
        let observers = ["observer", "connectionObserver"]
        #expect(
            Self.unchanged(Samples.policy, from: SessionPolicy()).filter { !observers.contains($0) } == [
                "requiresSecureFTP", "retries", "resumesFTPUploads",
            ])
        #expect(Self.unchanged(Samples.connections, from: ConnectionOptions()) == [])
        // Only the engine restricts the reach of a connection.
        #expect(Self.unchanged(Samples.needs, from: ConnectionNeeds()) == ["reach"])
        #expect(Self.unchanged(try Samples.proxies(), from: ProxyRules()) == [])
        #expect(Self.unchanged(Samples.security, from: AppTransportSecurity()) == [])
        #expect(Self.unchanged(try Samples.settings(), from: BackgroundSettings()) == [])
        #expect(Self.unchanged(Samples.counts, from: TransferCounts()) == [])
        #expect(Self.unchanged(Samples.notes, from: BackgroundOrder.Notes()) == [])
        #expect(Self.unchanged(Samples.status, from: DaemonStatus()) == [])
        #expect(
            Self.unchanged(try Samples.challenge(), from: ChallengeQuestion(.init(host: "", port: 0, kind: "", method: .basic)))
                == ["fetchIssuer"])
        #expect(Self.unchanged(try Samples.timeline(), from: TransactionTimeline(request: LoadRequest(url: nil))) == [])
        let plain = BackgroundOrder(TaskOrder(id: 1, request: LoadRequest(url: nil), delivery: .collect), created: 0)
        #expect(Self.unchanged(try Samples.order(), from: plain) == [])
        // Only orders of uploads have the field `upload`; the other fields in this list are not encoded.
        #expect(
            Self.unchanged(try Samples.order().task, from: plain.task).filter { !observers.contains($0) } == [
                "connectionHolder", "bodyFile", "upload", "isForProxies", "leftOrigin", "endsUpload",
            ])
        let outcome = TaskOutcome(result: .success(.none), response: nil, timelines: [], redirectCount: 0)
        // What is kept until the app was told is of this process.
        #expect(Self.unchanged(try Samples.outcome(.failure(try Samples.error())), from: outcome) == ["keptUntilTold"])
        let facts = ConnectionFacts(
            localAddress: nil, localPort: nil, remoteAddress: nil, remotePort: nil, tlsVersion: nil, tlsCipherSuite: nil,
            domainLookupStart: nil, domainLookupEnd: nil, connectStart: nil, secureConnectionStart: nil, secureConnectionEnd: nil,
            connectEnd: nil)
        // Trust in stored responses stays in the process. In the sample, `isInTLS` contradicts the TLS version, so that the field
        // is encoded.
        #expect(Self.unchanged(Samples.connection, from: facts) == ["trust", "isInTLS"])
    }

    @Test(arguments: Form.allCases)
    func `every message of a program survives encoding and decoding`(form: Form) throws {
        for message in try Samples.clientMessages() {
            let bytes = try form.write(message)
            let again = try form.client(bytes)
            #expect(Self.dumped(again) == Self.dumped(message))
            #expect(try form.write(again) == bytes)
        }
    }

    @Test(arguments: Form.allCases)
    func `every message of the daemon survives encoding and decoding`(form: Form) throws {
        for message in try Samples.daemonMessages() {
            let bytes = try form.write(message)
            let again = try form.daemon(bytes)
            #expect(Self.dumped(again) == Self.dumped(message))
            #expect(try form.write(again) == bytes)
        }
    }

    @Test(arguments: Form.allCases)
    func `everything that the daemon stores survives encoding and decoding`(form: Form) throws {
        var order = try Samples.order()
        order.task.request = try Samples.request(body: .file(path: "/a"))
        #expect(
            Self.dumped(try form.order(try form.write(order))) == Self.dumped(order))
        order.task.delivery = .collect
        order.task.upload = UploadOrder(resuming: Data("resume".utf8))
        let again = try form.order(try form.write(order))
        #expect(again.task.upload?.resuming == Data("resume".utf8))
        let outcome = try Samples.outcome(.failure(try Samples.error()))
        #expect(
            Self.dumped(try form.outcome(try form.write(outcome)))
                == Self.dumped(outcome))
        let response = try Samples.response()
        #expect(
            Self.dumped(try form.response(try form.write(response)))
                == Self.dumped(response))
    }

    @Test(arguments: Form.allCases)
    func `settings survive encoding and decoding with their secrets`(form: Form) throws {
        var settings = try Samples.settings()
        for launch in [nil, .systemdUnit("a@b.service"), .dBusName("org.example.A"), settings.launch] {
            settings.launch = launch
            let again = try form.settings(try form.write(settings))
            #expect(Self.dumped(again) == Self.dumped(settings))
            #expect(again.knownCredentials == settings.knownCredentials)
            #expect(again.proxies == settings.proxies)
            #expect(again.security == settings.security)
            #expect(again.policy.connections == settings.policy.connections)
            #expect(again.launch == launch)
        }
        #expect(
            try form.write(BackgroundSettings())
                == (form == .json ? Array(#"{"policy":{}}"#.utf8) : [2, 2, 1, 0]))
    }

    @Test(arguments: [Samples.password, Samples.identity, LoadCredential(.trust, persistence: .none)], Form.allCases)
    func `credentials survive encoding and decoding`(credential: LoadCredential, form: Form) throws {
        let message = ClientMessage.answer(.credential(.useCredential(credential)), 4, question: 1)
        guard
            case .answer(.credential(.useCredential(let again)), 4, 1) = try form.client(
                try form.write(message))
        else { throw MessageFailure.malformed("another message") }
        #expect(again == credential)
    }

    @Test(arguments: Form.allCases)
    func `header fields survive encoding and decoding byte by byte`(form: Form) throws {
        var block = HeaderBlock()
        for byte in UInt8.min...UInt8.max { [byte].withUnsafeBytes { block.append(name: $0, value: $0) } }
        var order = try Samples.order()
        order.task.request.headers = block
        let again = try form.order(try form.write(order)).task.request.headers
        #expect(again.lines.map { Array(again.bytes[$0.name]) } == (UInt8.min...UInt8.max).map { [$0] })
        #expect(again.lines.map { Array(again.bytes[$0.value]) } == (UInt8.min...UInt8.max).map { [$0] })
        #expect(again.index(of: "X") != nil)
    }

    @Test(arguments: Form.allCases)
    func `every kind of error survives encoding and decoding`(form: Form) throws {
        for kind in LoadError.Kind.allCases {
            let bytes = try form.write(DaemonMessage.failed(LoadError(kind, "m"), request: 1))
            guard case .failed(let error, 1) = try form.daemon(bytes) else {
                throw MessageFailure.malformed("\(kind)")
            }
            #expect(error.kind == kind)
        }
    }

    @Test(arguments: Form.allCases)
    func `the text of an error's cause is sent, up to the limit`(form: Form) throws {
        struct Cause: Error, CustomStringConvertible {
            let description: String
        }
        for (text, told) in [
            ("why", "why"), ("x" + String(repeating: "ä", count: 5_000), "x" + String(repeating: "ä", count: 2_047)),
        ] {
            let error = LoadError(.application, "", cause: Cause(description: text))
            let bytes = try form.write(DaemonMessage.failed(error, request: 1))
            guard case .failed(let again, _) = try form.daemon(bytes) else {
                throw MessageFailure.malformed(text)
            }
            #expect(again.cause as? DescribedError == DescribedError(told))
        }
    }

    @Test(arguments: Form.allCases)
    func `an infinite timeout becomes the largest finite one`(form: Form) throws {
        var settings = BackgroundSettings()
        settings.policy.resourceTimeout = .infinity
        let again = try form.settings(try form.write(settings))
        #expect(again.policy.resourceTimeout == .greatestFiniteMagnitude)
    }

    @Test(arguments: Form.allCases)
    func `a priority outside its range is clamped`(form: Form) throws {
        for (priority, expected) in [(7, 1), (-1, 0), (.infinity, 1), (.nan, 0.5), (0.25, 0.25)] as [(Float, Float)] {
            guard
                case .command(.setPriority(let again), 1) = try form.client(
                    try form.write(ClientMessage.command(.setPriority(priority), 1)))
            else { throw MessageFailure.malformed("\(priority)") }
            #expect(again == expected)
        }
    }

    @Test func `a plain order is small`() throws {
        let request = LoadRequest(url: try Samples.url("https://downloads.example.com/releases/image.iso"))
        let order = BackgroundOrder(
            TaskOrder(id: 1_234, request: request, delivery: .download(resuming: nil), interests: [.challenges, .metrics]),
            created: 712_345_678.123_456)
        #expect(try MessageCoding.encode(.submit(order)).count < 100)
    }

    @Test(arguments: [64, 8 << 20], Form.allCases)
    func `the collected response to an upload is sent, whatever its length`(count: Int, form: Form) throws {
        let outcome = TaskOutcome(
            result: .success(.collected(Data(repeating: 1, count: count))), response: nil, timelines: [], redirectCount: 0)
        guard
            case .event(.finished(let again), 1) = try form.daemon(
                try form.write(DaemonMessage.event(.finished(outcome), 1))),
            case .success(.collected(let data)) = again.result
        else { throw MessageFailure.malformed("another event") }
        #expect(data.count == count)
    }

    // MARK: Bytes that are passed on

    @Test func `an order is stored with the bytes in which it arrived`() throws {
        for body in [.none, .data(Data(count: 300)), .file(path: "/a")] as [RequestBody] {
            var order = try Samples.order()
            order.task.request = try Samples.request(body: body)
            let bytes = try MessageCoding.order(inSubmit: MessageCoding.encode(.submit(order)))
            #expect(try bytes == MessageCoding.encode(order))
        }
        // Fields of a later version are not lost.
        let message: [UInt8] = [2, 15] + [1, 6] + Array("submit".utf8) + [5, 2, 1, 0, 9, 1, 7]
        #expect(try MessageCoding.order(inSubmit: message) == [2, 2, 1, 0])
        #expect(throws: MessageFailure.self) { try MessageCoding.order(inSubmit: MessageCoding.encode(.told(1))) }
    }

    @Test func `an outcome is sent with the bytes in which it is stored`() throws {
        let failure = TaskOutcome.Body?.none
        for body in [failure, TaskOutcome.Body.none, .collected(Data(count: 200)), .file(path: "/spool/1/done-7")] {
            var outcome = try Samples.outcome(.failure(try Samples.error()))
            if let body { outcome.result = .success(body) }
            let path: String? = if case .file(let path)? = body { path } else { nil }
            let stored = try EncodedOutcome(outcome)
            #expect(stored.hasFile == (path != nil))
            let message = try MessageCoding.encode(.event(.finished(outcome), 300))
            for known in [stored, try EncodedOutcome(stored: stored.bytes), try EncodedOutcome(stored: Form.json.write(outcome))]
            {
                #expect(try known.message(to: 300, file: path) == message)
            }
        }
        #expect(throws: MessageFailure.self) { try EncodedOutcome(stored: [2, 1]) }
    }
}
