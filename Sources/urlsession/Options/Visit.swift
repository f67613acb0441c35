//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import URLLoading

/// What a command needs for its loads, made once: passwords are asked for while nothing is under way.
struct Visit {
    /// Without a user, who is in the answers.
    let url: URL
    let configuration: URLSessionConfiguration
    let answers: ChallengeAnswers
    /// What another load must have in common with it to share its connections.
    let terms: [String]
}

extension RequestOptions {
    /// Reads the files that the options name, and asks for the passwords that they leave out.
    ///
    /// - Parameters:
    ///   - address: What is to be loaded.
    ///   - cookies: The cookies in place of the stored ones and those of files.
    /// - Throws: Where a file cannot be read, or a password is not given.
    /// - Returns: What a load needs.
    func visit(_ address: String, cookies: HTTPCookieStorage? = nil) throws -> Visit {
        let url = try Self.url(address)
        try connections.schemes?.check(url, option: "--proto")
        let configuration = try configuration(cookies: cookies)
        try trust.apply(to: configuration)
        connections.apply(to: configuration)
        var plan = ChallengeAnswers.Plan()
        plan.pins = try trust.pins()
        plan.identity = try trust.identity()
        plan.netrc = login.user == nil ? try login.netrc.read() : nil
        plan.login = try login.login(at: url, plan.netrc)
        plan.methods = login.methods
        plan.trustsAnybody = trust.insecure
        try login.applyProxies(to: configuration)
        if plan.login != nil || plan.netrc != nil {
            // What is said goes before what is kept, which may be locked.
            let storage = URLCredentialStorage()
            // FTP servers are told who the user is before they ask.
            if let login = plan.login, let space = FTPAddress.space(url) {
                storage.setDefaultCredential(
                    URLCredential(user: login.user, password: login.password, persistence: .forSession), for: space)
            }
            configuration.urlCredentialStorage = storage
        }
        // A ticket is for nobody who is named, nor for a scheme that is not.
        configuration.usesKerberosTickets =
            plan.login == nil && plan.methods?.contains(NSURLAuthenticationMethodNegotiate) != false
        if trust.insecure, !common.silent {
            StandardError.print("warning: the server's certificate is not checked: it may be anybody's (--insecure)")
        }
        return Visit(
            url: url.withoutUser, configuration: configuration, answers: ChallengeAnswers(plan, for: url),
            terms: sessionTerms(plan, at: url))
    }
}
