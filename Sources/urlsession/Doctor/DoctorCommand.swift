//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import ArgumentParser
import Foundation
import URLLoading

/// `urlsession doctor`: shows where a load goes, and why it fails.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Says step by step where a load goes, and why it fails.",
        discussion: """
            It looks the name up, tries each address, and sends one GET, of whose answer it reads the head alone. Each step is told in plain \
            words, and the last line says what came of it. The exit code is that of "urlsession get".

            No credentials are sent unless options or the URL name them, and stored cookies and responses are left alone without --stores.
            """
    )

    @Argument(help: "The URL of http or https; http:// where there is no scheme.")
    var url: String

    @Option(
        name: [.customShort("m"), .customLong("max-time")],
        help: ArgumentHelp("The most that each step may take; 10.", valueName: "seconds"))
    var maximumTime = 10.0

    @Flag(help: "Look at the stored cookies, responses and HSTS hosts; nothing of them is changed or sent.")
    var stores = false

    @Flag(help: "Show it as JSON.")
    var json = false

    @OptionGroup(title: "Connection options") var connections: ConnectionOptions

    @OptionGroup(title: "Authentication and proxy options") var login: LoginOptions

    @OptionGroup(title: "TLS options") var trust: TrustOptions

    func validate() throws {
        if !(maximumTime > 0) { throw ValidationError("A time must be more than 0 seconds.") }
    }

    func run() async throws {
        let report = try await DoctorExamination(self).found()
        try StandardOutput.write(json ? JSONText.of(report) : report.text())
        if report.exitCode != 0 { throw ToolFailure(report.exitCode, nil) }
    }

    /// An ephemeral configuration without any stored data.
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
        return ChallengeAnswers(plan, for: url)
    }

    /// Whether the options or the URL contain a login.
    func namesUser(_ url: URL) throws -> Bool {
        if login.user != nil || url.user != nil { return true }
        return try login.netrc.login(in: login.netrc.read(), at: url) != nil
    }
}

extension ConnectionOptions {
    /// Whether options make connections go to another address than that of the URL's host and port.
    var leadElsewhere: Bool { !resolve.isEmpty || !connectTo.isEmpty || unixSocket != nil || nameServers != nil }
}
