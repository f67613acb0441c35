// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The steps of `urlsession doctor`, in the order in which a load takes them.
struct DoctorExamination {
    private let command: DoctorCommand
    private var report: DoctorReport
    private var probes: [ConnectionProbe] = []

    init(_ command: DoctorCommand) {
        self.command = command
        report = DoctorReport(url: RequestOptions.hidingUser(command.url))
    }

    /// The destination of the first connection: the server or a proxy.
    private struct Target {
        let host: String
        let port: Int
        let isProxy: Bool
    }

    /// Performs all steps.
    ///
    /// - Throws: If an option cannot be used.
    /// - Returns: The report.
    func found() async throws -> DoctorReport {
        var examination = self
        try await examination.examine()
        return examination.report
    }

    private mutating func examine() async throws {
        guard let given = place() else { return }
        let configuration = try command.sessionConfiguration()
        let (url, upgrade) = await strictTransport(given, configuration)
        var proxy = DoctorReport.Step(.proxy, .good, [])
        let target = try await proxies(of: url, command.sessionConfiguration(), &proxy)
        await network(to: target, proxy)
        guard target != nil else {
            return conclude(url, failure: proxyFailure ?? ToolFailure(7, proxy.lines.last), DoctorLoad.Outcome())
        }

        var request = URLRequest(url: url.withoutUserInfo)
        request.cachePolicy = .reloadIgnoringLocalCacheData
        request.assumesHTTP3Capable = command.connections.http3
        if let token = command.login.bearerToken { request.setValue("Bearer " + token, forHTTPHeaderField: "Authorization") }
        let outcome = await DoctorLoad.run(
            request, configuration, try command.answers(for: given),
            RedirectRule(schemes: command.connections.schemes, redirectSchemes: command.connections.redirectSchemes))
        let failure =
            outcome.failure ?? outcome.error.map { ToolFailure($0, answered: outcome.response != nil) }
        add(DoctorTrust.step(url, outcome, failure, isChecked: !command.trust.insecure))
        await transportSecurity(url, outcome, configuration)
        add(Self.strictTransportStep(upgrade, outcome))
        add(DoctorStores.cache(url, outcome.response, isRequested: command.stores))
        add(DoctorStores.cookies(url, isRequested: command.stores))
        add(DoctorProtocol.step(outcome))
        conclude(url, failure: failure, outcome)
    }

    private var proxyFailure: ToolFailure?

    private mutating func add(_ step: DoctorReport.Step) { report.steps.append(step) }

    private mutating func conclude(_ url: URL, failure: ToolFailure?, _ outcome: DoctorLoad.Outcome) {
        add(Self.answerStep(url, failure, outcome))
        report.exitCode = failure?.code ?? 0
        let verdict = DoctorVerdict(url: url, failure: failure, outcome: outcome, probes: probes)
        report.verdict = verdict.sentence
        if verdict.isRefusedByProxy {
            for index in report.steps.indices where report.steps[index].step == .proxy { report.steps[index].result = .bad }
        }
        // The load determines the verdict: if it succeeds, problems of other steps are only notes.
        if failure == nil {
            for index in report.steps.indices where report.steps[index].result == .bad { report.steps[index].result = .note }
        }
    }

    // MARK: The URL

    private mutating func place() -> URL? {
        func refuse(_ code: Int32, _ line: String) -> URL? {
            add(.init(.url, .bad, [line]))
            report.exitCode = code
            report.verdict = "Nothing was sent: \(line)."
            return nil
        }
        guard let url = try? RequestOptions.url(command.url) else { return refuse(3, "that is not a URL") }
        let scheme = url.scheme?.lowercased() ?? ""
        guard ["http", "https"].contains(scheme) else {
            return refuse(1, "the doctor supports http and https, but not '\(scheme)'")
        }
        guard let host = url.host(percentEncoded: false), !host.isEmpty else { return refuse(3, "the URL has no host") }
        do {
            try command.connections.schemes?.check(url, option: "--proto")
        } catch {
            return refuse(error.code, error.message ?? "--proto does not allow it")
        }
        var lines = ["\(scheme), host \(host), port \(Self.port(url))"]
        var result = DoctorReport.Mark.good
        if !command.url.allSatisfy(\.isASCII), host.lowercased().contains("xn--") {
            lines.append("this is the host's name in DNS, the encoded form of the letters that you wrote (IDNA)")
        }
        if url.user != nil {
            result = .note
            lines.append("it contains a user name, which everyone who sees the URL can read")
        }
        if scheme == "http" {
            result = .note
            lines.append("http is not encrypted: everyone on the network path can read and change it")
        }
        add(.init(.url, result, lines, ["scheme": [scheme], "host": [host], "port": ["\(Self.port(url))"]]))
        return url
    }

    private static func port(_ url: URL) -> Int { url.port ?? (url.scheme?.lowercased() == "https" ? 443 : 80) }

    // MARK: HSTS

    /// Returns the https URL that replaces an http URL if the host is known to require TLS (HSTS).
    ///
    /// Nothing is sent: the request accepts only a stored response, and the upgrade happens before the cache is searched.
    private func strictTransport(_ url: URL, _ configuration: URLSessionConfiguration) async -> (URL, String?) {
        guard var parts = URLComponents(url: url.withoutUserInfo, resolvingAgainstBaseURL: true) else { return (url, nil) }
        let isSecure = parts.scheme?.lowercased() == "https"
        parts.scheme = "http"
        guard let plain = parts.url else { return (url, nil) }
        let probing = command.stores ? URLSessionConfiguration.default : URLSessionConfiguration.ephemeral
        probing.appTransportSecurity = configuration.appTransportSecurity
        var request = URLRequest(url: plain)
        request.cachePolicy = .returnCacheDataDontLoad
        let outcome = await DoctorLoad.run(request, probing)
        let upgrade = outcome.metrics?.transactionMetrics.first { $0.response is HTTPURLResponse }?.response as? HTTPURLResponse
        guard upgrade?.value(forHTTPHeaderField: "Non-Authoritative-Reason") != nil,
            let secure = upgrade?.value(forHTTPHeaderField: "Location").flatMap({ URL(string: $0) })
        else { return (url, nil) }
        return isSecure
            ? (url, "the host is known to require https") : (secure, "http becomes https: the host is known to require it")
    }

    private static func strictTransportStep(_ upgrade: String?, _ outcome: DoctorLoad.Outcome) -> DoctorReport.Step {
        let field = outcome.response?.value(forHTTPHeaderField: "Strict-Transport-Security")
        let isSecure = outcome.response?.url?.scheme?.lowercased() == "https"
        var lines = [upgrade ?? "the host is not known to require https"]
        var facts = ["known": ["\(upgrade != nil)"]]
        if let field, isSecure {
            facts["field"] = [field]
            let age = DoctorStores.seconds("max-age", in: field)
            let until = age.map { Date(timeIntervalSinceNow: TimeInterval($0)).formatted(.iso8601.year().month().day()) }
            lines.append(
                until.map { "the server requires https until \($0)" }
                    ?? "the server's Strict-Transport-Security field is not valid")
        }
        return .init(.hsts, upgrade == nil && field == nil ? .none : .good, lines, facts)
    }

    // MARK: Proxy and network

    private mutating func proxies(
        of url: URL, _ configuration: URLSessionConfiguration, _ step: inout DoctorReport.Step
    ) async throws -> Target? {
        // Refusals by App Transport Security are reported in a later step of the examination.
        configuration.appTransportSecurity = ["NSAllowsArbitraryLoads": true]
        let session = URLSession(configuration: configuration)
        defer { session.invalidateAndCancel() }
        let host = url.host(percentEncoded: false) ?? ""
        do {
            let ways = try await session.proxies(for: url.withoutUserInfo)
            let first = ways.first ?? nil
            step.facts = ["ways": ways.map { $0?.absoluteString ?? "direct" }]
            guard let first, let name = first.host(percentEncoded: false) else {
                step.result = .none
                step.lines = ["none, " + DoctorProxies.reasonForNoProxy(command.login, host: host)]
                return Target(host: host, port: Self.port(url), isProxy: false)
            }
            step.lines = [
                ways.map { $0?.absoluteString ?? "direct" }.joined(separator: ", then "),
                "set by \(DoctorProxies.source(command.login, isSecure: url.scheme?.lowercased() == "https"))",
            ]
            let looksUpHere = ["socks4", "socks5"].contains(first.scheme ?? "")
            step.lines.append(
                looksUpHere ? "the server's name is looked up on this machine" : "the server's name is looked up by the proxy")
            return Target(host: name, port: first.port ?? 80, isProxy: true)
        } catch {
            let failure = ToolFailure(error)
            proxyFailure = failure
            step.result = .bad
            step.lines = [failure.message ?? ""]
            return nil
        }
    }

    /// Examines the name lookup, the route and the connections for the target, which is the server or a proxy.
    private mutating func network(to target: Target?, _ proxy: DoctorReport.Step) async {
        let limit = command.maximumTime
        guard let target else { return add(proxy) }
        guard !command.connections.overrideDestination else {
            add(.init(.name, .none, ["not looked up: options set the destination of connections"]))
            add(proxy)
            return add(.init(.connection, .none, ["not tried separately"]))
        }
        let what = target.isProxy ? "the proxy \(target.host)" : target.host
        let probe = await NameProbe.run(target.host, limit: limit)
        let isAddress = SocketAddress(target.host, port: target.port) != nil
        if let failure = probe.failure {
            add(.init(.name, .bad, ["no address was found for \(what): \(failure)"], ["failure": [failure]]))
        } else {
            let (new, old) = (probe.addresses.filter { $0.contains(":") }, probe.addresses.filter { !$0.contains(":") })
            var lines = [isAddress ? "\(what) is an address" : "\(what) was found in \(Self.milliseconds(probe.seconds))"]
            lines.append("IPv6: \(new.isEmpty ? "none" : new.joined(separator: ", "))")
            lines.append("IPv4: \(old.isEmpty ? "none" : old.joined(separator: ", "))")
            add(.init(.name, .good, isAddress ? [lines[0]] : lines, ["IPv6": new, "IPv4": old]))
        }
        add(await Self.route(to: probe.addresses))
        add(proxy)
        guard !probe.addresses.isEmpty else { return add(.init(.connection, .none, ["no address to try"])) }
        probes = await ConnectionProbe.run(probe.addresses, port: target.port, limit: limit)
        let works = probes.contains { $0.failure == nil }
        add(
            .init(
                .connection, works ? probes.allSatisfy { $0.failure == nil } ? .good : .note : .bad,
                probes.map { probe in
                    "\(probe.address) port \(target.port): \(probe.failure ?? "connected in \(Self.milliseconds(probe.seconds ?? 0))")"
                },
                [
                    "connected": probes.filter { $0.failure == nil }.map(\.address),
                    "failed": probes.filter { $0.failure != nil }.map(\.address),
                ]))
    }

    private static func route(to addresses: [String]) async -> DoctorReport.Step {
        let path = await NetworkPath.current()
        let sources = addresses.prefix(8).compactMap { SocketAddress($0, port: 80)?.source }
        guard let source = sources.first else {
            let line = path.isSatisfied ? "no route to the addresses found" : "no route to other networks"
            return .init(
                .route, addresses.isEmpty ? path.isSatisfied ? .none : .bad : .bad,
                [addresses.isEmpty && path.isSatisfied ? "no address to reach" : line])
        }
        if source == "::1" || source.hasPrefix("127.") {
            return .init(.route, .good, ["within this machine"], ["source": [source]])
        }
        let interface = path.interfaces.first { $0.addresses.contains(source) }
        let name = interface.map { "\($0.name) (\($0.kind.rawValue)\($0.isExpensive ? ", metered" : ""))" } ?? "an interface"
        return .init(
            .route, .good, ["through \(name), from \(source)"],
            ["source": [source], "interface": [interface?.name].compactMap { $0 }])
    }

    static func milliseconds(_ seconds: Double) -> String { "\(ByteText.rounded(seconds * 1000, digits: 1)) ms" }

    // MARK: ATS

    private mutating func transportSecurity(
        _ url: URL, _ outcome: DoctorLoad.Outcome, _ configuration: URLSessionConfiguration
    ) async {
        if url.scheme?.lowercased() == "https" {
            let version = outcome.metrics?.transactionMetrics.last { $0.negotiatedTLSProtocolVersion != nil }?
                .negotiatedTLSProtocolVersion?.rawValue
            guard let version else { return add(.init(.ats, .none, ["the load uses https"])) }
            return add(.init(.ats, version >= 0x0303 ? .good : .note, ["https with \(SecurityText.version(version))"]))
        }
        let strict = URLSessionConfiguration.ephemeral
        strict.appTransportSecurity = [:]
        var request = URLRequest(url: url.withoutUserInfo)
        request.cachePolicy = .returnCacheDataDontLoad
        let refusal = await DoctorLoad.run(request, strict).error as? URLError
        guard refusal?.code == .appTransportSecurityRequiresSecureConnection else {
            return add(.init(.ats, .good, ["its defaults allow http to this host"]))
        }
        let words = refusal.map { ToolFailure.describe($0) } ?? ""
        add(
            .init(
                .ats, command.trust.ats ? .bad : .note,
                [command.trust.ats ? words : "this tool allows it; a program with the defaults gets: \(words)"]))
    }

    // MARK: The response

    private static func answerStep(_ url: URL, _ failure: ToolFailure?, _ outcome: DoctorLoad.Outcome) -> DoctorReport.Step {
        var lines: [String] = []
        var host = url.host() ?? ""
        for (status, address) in outcome.redirects {
            let isElsewhere = address.host() != host
            host = address.host() ?? ""
            lines.append(
                "\(status) to \(RequestOptions.hidingUser(address.absoluteString))\(isElsewhere ? ", another host" : "")")
        }
        let facts = ["redirects": outcome.redirects.map { RequestOptions.hidingUser($0.to.absoluteString) }]
        guard let response = outcome.response else {
            return .init(.answer, failure == nil ? .note : .bad, lines + [failure?.message ?? "there was no response"], facts)
        }
        let time = outcome.metrics.map { " after \(milliseconds($0.taskInterval.duration))" } ?? ""
        let line = response.headLines.first?.split(separator: " ").dropFirst().joined(separator: " ") ?? "\(response.statusCode)"
        let result: DoctorReport.Mark = failure != nil ? .bad : response.statusCode >= 400 ? .note : .good
        return .init(
            .answer, result, lines + [line + time] + [failure?.message].compactMap { $0 },
            facts.merging(["status": ["\(response.statusCode)"]]) { $1 })
    }
}
