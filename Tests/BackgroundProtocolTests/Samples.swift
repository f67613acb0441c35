// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire
import LoadingModel

@testable import BackgroundProtocol

/// Values in which every field differs from its default.
enum Samples {
    static func url(_ text: String = "https://example.com/a%20b?c=d#e") throws -> URL {
        guard let url = URL(string: text) else { throw MessageFailure.malformed(text) }
        return url
    }

    /// Header fields with a repeated name, a name in both cases, UTF-8, and bytes that are not UTF-8.
    static var headers: HeaderBlock {
        var headers = HeaderBlock([("Accept", "*/*"), ("X-Name", "Grüße 🌍"), ("accept", "text/html"), ("Empty", "")])
        Array("X-Bytes".utf8).withUnsafeBytes { name in
            [0xFF, 0xC3, 0x28, 0x7F, 0x01].withUnsafeBytes { headers.append(name: name, value: $0) }
        }
        return headers
    }

    static var needs: ConnectionNeeds {
        var needs = ConnectionNeeds()
        needs.service = .callSignaling
        needs.requiresDNSSEC = true
        needs.prohibited = [.cellular, .ultraConstrained]
        return needs
    }

    static func request(body: RequestBody = .data(Data([0, 1, 0xFF]))) throws -> LoadRequest {
        var request = LoadRequest(url: try url())
        request.mainDocumentURL = try url("https://example.org/")
        request.method = "PUT"
        request.headers = headers
        request.body = body
        request.timeout = 0.1
        request.cachePolicy = .reloadRevalidatingCacheData
        request.handlesCookies = false
        request.cookiePartition = "https://example.org"
        request.needs = needs
        request.assumesHTTP3 = true
        return request
    }

    static var responseHead: ResponseHead { ResponseHead(minorVersion: 0, status: 206, reason: "Teil", headers: headers) }

    static func response() throws -> LoadResponse {
        LoadResponse(url: try url(), kind: .http(responseHead), expectedLength: 12_345_678_901)
    }

    static func error() throws -> LoadError {
        var error = LoadError(
            .serverCertificateUntrusted, "asking: \"no\"\n\u{0}", cause: DescribedError("told by TLS"), url: try url())
        error.resumeData = Data("resume".utf8)
        error.uploadResumeData = Data("upload".utf8)
        error.peerTrust = [Data([1]), Data()]
        error.isProxyError = true
        error.isUnansweredLookup = true
        error.networkObjection = .constrained
        error.cancelReason = .insufficientResources
        return error
    }

    static var connection: ConnectionFacts {
        ConnectionFacts(
            localAddress: "192.0.2.1", localPort: 1, remoteAddress: "2001:db8::1", remotePort: 443, tlsVersion: 0x0304,
            tlsCipherSuite: 0x1301, domainLookupStart: 0.25, domainLookupEnd: 1.1, connectStart: 2.2, secureConnectionStart: 3.3,
            secureConnectionEnd: 4.4, connectEnd: 5.5, wasAskedForCertificate: true, sentClientCertificate: true,
            isVerified: true,
            serverCertificate: Data([3, 2]), isToProxy: true, isMultipath: true, isForwarded: true,
            interface: NetworkPath.Interface(
                name: "wlan0", index: 3, kind: .wifi, isExpensive: true, isConstrained: true, isUltraConstrained: true,
                addresses: ["192.0.2.1"]),
            usedNameServers: true, isInTLS: false, applicationProtocol: "h2")
    }

    static func timeline() throws -> TransactionTimeline {
        var timeline = TransactionTimeline(request: try request())
        timeline.response = try response()
        timeline.source = .localCache
        timeline.fetchStart = 700_000_000.123_456_7
        timeline.domainLookupStart = 1.5
        timeline.domainLookupEnd = 2.5
        timeline.connectStart = 3.5
        timeline.secureConnectionStart = 4.5
        timeline.secureConnectionEnd = 5.5
        timeline.connectEnd = 6.5
        timeline.requestStart = 7.5
        timeline.requestEnd = 8.5
        timeline.responseStart = 9.5
        timeline.responseEnd = -10.5
        timeline.networkProtocol = "http/1.1"
        timeline.isReusedConnection = true
        timeline.isProxyConnection = true
        timeline.requestHeaderBytes = 1
        timeline.requestBodyBytes = 2
        timeline.requestBodyBytesBeforeEncoding = 3
        timeline.responseHeaderBytes = 4
        timeline.responseBodyBytes = 5
        timeline.responseBodyBytesAfterDecoding = .max
        timeline.connection = connection
        return timeline
    }

    static func outcome(_ result: Result<TaskOutcome.Body, LoadError>) throws -> TaskOutcome {
        TaskOutcome(
            result: result, response: try response(), timelines: [try timeline(), TransactionTimeline(request: try request())],
            redirectCount: 3, sentBodyBytes: 4, receivedBodyBytes: 5)
    }

    static func order() throws -> BackgroundOrder {
        let task = TaskOrder(
            id: 17, request: try request(body: .file(path: "/home/me/ä b")), delivery: .download(resuming: Data("point".utf8)),
            interests: [.challenges, .resumePoints], priority: 0.3, earliestBegin: 800_000_000.5)
        var order = BackgroundOrder(task, created: 712_345_678.123)
        order.notes = notes
        order.isDiscretionary = true
        return order
    }

    static var notes: BackgroundOrder.Notes {
        var notes = BackgroundOrder.Notes()
        notes.description = "\u{0}\u{1F}\"\\/ä\u{2028}"
        notes.expectedToSend = 0
        notes.expectedToReceive = .max
        return notes
    }

    static var counts: TransferCounts {
        var counts = TransferCounts()
        counts.sent = 1
        counts.expectedToSend = 2
        counts.received = 3
        counts.expectedToReceive = 4
        return counts
    }

    static func knownTask(_ phase: KnownTask.Phase) throws -> KnownTask {
        var task = KnownTask(order: try order(), phase: phase)
        task.counts = counts
        task.current = try request(body: .none)
        task.response = try response()
        return task
    }

    static var password: LoadCredential {
        LoadCredential(.password(user: "Ärger", password: "\"geheim\\"), persistence: .synchronizable)
    }
    static var identity: LoadCredential {
        LoadCredential(
            .identity(ClientIdentity(certificates: [Data([1, 2]), Data([3])], privateKey: Data([4, 5]))), persistence: .permanent)
    }

    static var space: ProtectionSpace {
        ProtectionSpace(host: "2001:db8::1", port: 8_443, kind: "https", isProxy: true, realm: "\"r\"", method: .negotiate)
    }

    static func challenge() throws -> ChallengeQuestion {
        var challenge = ChallengeQuestion(space)
        challenge.serverTrust = [Data([1]), Data([2, 3])]
        challenge.distinguishedNames = [Data([4])]
        challenge.previousFailureCount = 2
        challenge.proposed = identity
        challenge.response = try response()
        return challenge
    }
}

// MARK: Settings

extension Samples {
    static var connections: ConnectionOptions {
        typealias Endpoint = ConnectionOptions.Endpoint
        var options = ConnectionOptions()
        options.unixSocketPath = "/run/socket"
        options.interfaceName = "eth0"
        options.localAddress = "192.0.2.7"
        options.addresses = [
            Endpoint(host: "example.com", port: 443): ["192.0.2.1", "2001:db8::1"], Endpoint(host: nil, port: 80): [],
            Endpoint(host: "example.com", port: nil): ["192.0.2.2"], Endpoint(host: nil, port: nil): ["192.0.2.3"],
        ]
        options.nameServers = ["192.0.2.53"]
        options.httpVersions = .http2PriorKnowledge
        options.substitutions = [
            .init(endpoint: Endpoint(host: "a.example", port: nil), replacement: Endpoint(host: nil, port: 8_080)),
            .init(endpoint: Endpoint(host: nil, port: nil), replacement: Endpoint(host: "2001:db8::2", port: nil)),
        ]
        return options
    }

    static var policy: SessionPolicy {
        var policy = SessionPolicy()
        policy.requestTimeout = 1.5
        policy.resourceTimeout = 2.5
        policy.maximumConnectionsPerHost = 1
        policy.additionalHeaders = [("User-Agent", "A/1 (ä)"), ("X", ""), ("X", "2")]
        policy.omittedHeaders = ["accept", "user-agent"]
        policy.cachePolicy = .returnCacheDataDontLoad
        policy.cookieAcceptance = .always
        policy.usesCookies = false
        policy.cachedBodyLimit = 7
        policy.usesStrictTransportSecurity = false
        policy.usesKerberosTickets = false
        policy.minimumTLSVersion = 0x0303
        policy.maximumTLSVersion = 0x0304
        policy.trustRoots = [Data([1, 2, 3])]
        policy.connections = connections
        policy.needs = needs
        for (number, _, field) in SessionPolicy.plainFields {
            switch field {
            case .flag(let path): policy[keyPath: path].toggle()
            case .number(let path, _): policy[keyPath: path] += Int64(number)
            case .limit(let path): policy[keyPath: path] = Int64(number)
            case .path(let path, _): policy[keyPath: path] = "/home/me/\(number)"
            }
        }
        return policy
    }

    static func proxies() throws -> ProxyRules {
        var server = ProxyServer(.socks4, host: "proxy.example", port: 1_080, user: "u", password: "p")
        server.looksUpHere = true
        server.tunnelsAlways = true
        var rules = ProxyRules()
        rules.http = .proxy(server)
        rules.https = .script(.at(try url("https://example.com/proxy.pac")))
        rules.exceptions = ProxyExceptions(["*.local", "10.0.0.0/8"], includesSimpleNames: true, includesSubdomains: true)
        rules.list = [
            .init(.direct, domains: ["a.example"], excludedDomains: ["b.a.example"], allowsFailover: true),
            .init(.unusable("")), .init(.script(.text("function FindProxyForURL(u, h) { return 'DIRECT' }"))),
            .init(.proxy(ProxyServer(.http, host: "a", port: 0))), .init(.proxy(ProxyServer(.https, host: "b", port: 65_535))),
            .init(.proxy(ProxyServer(.socks5, host: "::1", port: 1))),
        ]
        return rules
    }

    static var security: AppTransportSecurity {
        var security = AppTransportSecurity()
        security.allowsArbitraryLoads = true
        security.allowsArbitraryLoadsForMedia = false
        security.allowsArbitraryLoadsInWebContent = true
        security.allowsLocalNetworking = false
        let loose = AppTransportSecurity.Exception(
            includesSubdomains: true, allowsInsecureLoads: true, minimumVersion: 0x0301, requiresForwardSecrecy: false)
        for domain in ["example.com", "Bücher.example", "10.0.0.0/8", "192.0.2.1", "2001:db8::/32"] {
            security.setException(loose, for: domain)
        }
        security.setException(AppTransportSecurity.Exception(), for: "strict.example")
        let hash = Data(repeating: 7, count: 32)
        security.setPins(.init(includesSubdomains: true, leaf: [hash], ca: [hash, hash]), for: "pinned.example")
        security.setPins(.init(fault: "it is named twice"), for: "faulty.example")
        security.setPins(.init(leaf: [Data([1])]), for: "short.example")
        security.pinFault = "no dictionary"
        security.warnings = ["a warning"]
        return security
    }

    static func settings() throws -> BackgroundSettings {
        var settings = BackgroundSettings()
        settings.policy = policy
        settings.proxies = try proxies()
        settings.rootFile = "/nix/store/ca.pem"
        settings.rootDirectories = ["/etc/own", "/etc/other"]
        settings.security = security
        settings.cookies = .file("/home/me/cookies")
        settings.credentials = .memory
        settings.strictTransportSecurity = .file("/home/me/hsts")
        settings.knownCredentials = [
            .init(space: space, credential: password, isDefault: true),
            .init(space: space, credential: identity, isDefault: false),
        ]
        settings.isDiscretionary = true
        settings.sendsLaunchEvents = false
        settings.launch = .arguments(["/usr/bin/program", "", "--ä"], directory: "/home/me")
        return settings
    }

    static func attachment() throws -> ClientMessage.Attachment {
        var attachment = ClientMessage.Attachment(
            identifier: "org.example.ä", settings: try settings(), takesEvents: true, wasLaunched: true)
        attachment.told = [1, .max]
        return attachment
    }

    static var status: DaemonStatus {
        var status = DaemonStatus()
        status.process = 4_711
        status.version = "1.2.3"
        status.socket = "/run/user/1000/socket"
        status.directory = "/home/me/.local/share"
        status.uptime = 12.5
        status.connections = 1
        status.sessions = 2
        status.running = 3
        status.waiting = 4
        status.paused = 5
        status.ended = 6
        status.residentBytes = 7
        status.trouble = ["the disk is full"]
        status.isConnected = false
        status.isMetered = true
        status.hasExternalPower = false
        status.terms = TransferTerms(hours: ["22:00-06:00", "12-13"].compactMap { DayHours($0) }, rate: 1_024)
        status.isWithinHours = false
        return status
    }

    static func report(_ state: TransferReport.State) -> TransferReport {
        TransferReport(
            number: .min, program: "/usr/bin/program", session: "s", task: 3, url: "https://example.com/", isUpload: true,
            state: state,
            reason: "there is no network", counts: counts, created: 1.25, description: "a file")
    }
}

// MARK: Messages

extension Samples {
    static func clientMessages() throws -> [ClientMessage] {
        let commands: [TaskCommand] = [
            .suspend, .resume, .cancel, .cancelProducingResumeData, .setPriority(0.7), .setPriority(0.5),
        ]
        let answers: [TaskAnswer] = [
            .credential(.useCredential(nil)), .credential(.useCredential(password)), .credential(.useCredential(identity)),
            .credential(.useCredential(LoadCredential(.trust, persistence: .forSession))), .credential(.performDefaultHandling),
            .credential(.cancel), .credential(.rejectProtectionSpace), .delayed(.proceed), .delayed(.cancel),
            .delayed(.replace(try request())),
        ]
        let requests: [ManagerRequest] = [
            .list, .status, .pause(1), .resume(-2), .cancel(.max), .quit(program: "/usr/bin/program"), .log, .watch, .handOver,
            .setTerms(TransferTerms()), .setTerms(TransferTerms(hours: [DayHours("0-24")].compactMap { $0 }, rate: .max)),
        ]
        var plain = BackgroundOrder(TaskOrder(id: 1, request: LoadRequest(url: nil), delivery: .collect), created: 0)
        var messages: [ClientMessage] = [
            .hello(version: 3, role: .session), .hello(version: 1, role: .manager), .attach(try attachment()),
            .attach(.init(identifier: "i", settings: BackgroundSettings(), takesEvents: false, wasLaunched: false)),
            .submit(try order()), .submit(plain), .note(notes, 4), .note(BackgroundOrder.Notes(), 5), .told(.max), .eventsHandled,
            .invalidate, .renew(.reset, request: 6), .renew(.flush, request: -7), .proxies(try url(), request: 8),
        ]
        plain.task.delivery = .stream
        plain.task.request.body = .data(Data())
        messages.append(.submit(plain))
        messages += commands.map { .command($0, 9) }
        messages += answers.map { .answer($0, 9, question: 10) }
        messages += requests.map { .manage($0, request: 11) }
        return messages
    }

    static func events() throws -> [TaskEvent] {
        [
            .requestChanged(try request()), .waitingForConnectivity,
            .sentHead(RequestHead(method: "PUT", target: "/a b", headers: headers)), .informational(responseHead, url: try url()),
            .sent(bytes: 1, total: 2, expected: 3), .sent(bytes: 0, total: .max, expected: -1), .response(try response()),
            .response(
                LoadResponse(url: try url("file:///a"), kind: .local(mimeType: "a/b", textEncoding: "c"), expectedLength: 0)),
            .response(LoadResponse(url: try url("data:,"), kind: .local(mimeType: nil, textEncoding: nil), expectedLength: -1)),
            .data(Data([1, 2])), .wrote(bytes: 4, total: 5, expected: 6), .resumed(offset: 7, expected: 8),
            .resumable(nil), .resumable(Data([1])), .becameDownload, .finished(try outcome(.failure(try error()))),
            .finished(try outcome(.success(.none))), .finished(try outcome(.success(.collected(Data([9]))))),
            .finished(try outcome(.success(.file(path: "/tmp/ä")))),
        ]
    }

    static func daemonMessages() throws -> [DaemonMessage] {
        let refusals: [DaemonMessage.Refusal] = [.version, .inUse, .malformed, .tooMany, .storage, .waiting]
        var messages: [DaemonMessage] = [
            .welcome(version: 2), .known(try knownTask(.running)), .known(try knownTask(.suspended)),
            .known(try knownTask(.ended)), .attached(lastTask: 0), .attached(lastTask: 12),
            .accepted([]), .accepted([1, 2]), .forgotten(6), .rejected(3, try error()),
            .question(.challenge(try challenge()), 4, question: 5),
            .question(.challenge(ChallengeQuestion(space)), 4, question: 5),
            .question(.delayedRequest(try request()), 6, question: 7),
            .renewed(request: 8), .proxies([nil, try url(), nil], request: 9), .proxies([], request: 9),
            .failed(try error(), request: 10), .transfers([], request: 11, isLast: true),
            .transfers([.running, .waiting, .paused, .ended, .gone].map(report), request: 11, isLast: false),
            .status(status, request: 12), .status(DaemonStatus(), request: 12), .log(["a", ""], request: 13),
            .log([], request: 14),
            .done(request: 15),
        ]
        messages += refusals.map { .refused($0, "why") }
        messages += try events().map { .event($0, 16) }
        return messages
    }
}
