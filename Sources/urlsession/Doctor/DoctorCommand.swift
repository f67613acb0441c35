// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession doctor`: shows each step of a load, and why the load fails.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Shows step by step where a load goes, and why it fails.",
        discussion: """
            It looks up the name, tries each address, and sends one GET, of whose response it reads only the head. Each step is explained \
            in plain words, and the last line states the result. The exit code is that of "urlsession get".

            No credentials are sent unless options or the URL contain them. Stored cookies and responses are not used without --stores.
            """
    )

    @Argument(help: "The http or https URL; without a scheme, http:// is assumed.")
    var url: String

    @Option("-m --max-time <seconds>", "The timeout of each step; 10 by default.")
    var maximumTime = 10.0

    @Flag("--stores", "Also examine the stored cookies, responses and HSTS hosts, without changing or sending them.")
    var stores = false

    @Flag("--json", "Show the result as JSON.")
    var json = false

    @OptionGroup(title: "Connection options") var connections: ConnectionOptions

    @OptionGroup(title: "Authentication and proxy options") var login: LoginOptions

    @OptionGroup(title: "TLS options") var trust: TrustOptions

    func validate() throws {
        try refuse(if: !(maximumTime > 0), "A time must be more than 0 seconds.")
    }

    func run() async throws {
        let report = try await DoctorExamination(self).found()
        try StandardOutput.write(json ? JSONText.of(report) : report.text())
        if report.exitCode != 0 { throw ToolFailure(report.exitCode, nil) }
    }

    /// Returns an ephemeral configuration without any stored data.
    func sessionConfiguration() throws -> URLSessionConfiguration {
        let configuration = URLSessionConfiguration.ephemeral
        try trust.apply(to: configuration)
        connections.apply(to: configuration)
        try login.applyProxies(to: configuration)
        configuration.urlCache = nil
        configuration.timeoutIntervalForRequest = maximumTime
        configuration.timeoutIntervalForResource = maximumTime
        configuration.usesKerberosTickets = login.negotiate && login.user == nil
        return configuration
    }

    func answers(for url: URL) throws -> ChallengeAnswers {
        var plan = ChallengeAnswers.Plan()
        plan.pins = try trust.pins()
        plan.identity = try trust.identity()
        plan.login = try login.login(at: url, login.netrc.read())
        plan.methods = login.methods
        plan.trustsAnybody = trust.insecure
        // Otherwise, challenges could be answered with stored credentials, which the user did not ask to send.
        plan.logsIn = login.user != nil || url.user != nil || plan.login != nil
        return ChallengeAnswers(plan, for: url)
    }
}

extension ConnectionOptions {
    /// Whether options determine the addresses of connections, instead of the system's lookup of the URL's host.
    var overrideDestination: Bool { !resolve.isEmpty || !connectTo.isEmpty || unixSocket != nil || nameServers != nil }
}
