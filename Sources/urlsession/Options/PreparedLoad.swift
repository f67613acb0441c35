// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// The data for a command's load, prepared in advance, so that passwords are asked for before anything is loaded.
struct PreparedLoad {
    /// The URL without its user name and password; the login to use is in `answers`.
    let url: URL
    let configuration: URLSessionConfiguration
    let answers: ChallengeAnswers
    /// The options that another load must share to use the same connections.
    let terms: [String]
}

extension RequestOptions {
    /// Reads the files of the options, and asks for missing passwords.
    ///
    /// - Parameters:
    ///   - address: The URL to load.
    ///   - cookies: Replaces the stored cookies and those of files, if not nil.
    /// - Throws: If a file cannot be read, or a password is missing.
    /// - Returns: The data for the load.
    func prepared(_ address: String, cookies: HTTPCookieStorage? = nil) throws -> PreparedLoad {
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
            // Explicit logins take precedence over stored credentials, whose keyring may be locked.
            let storage = URLCredentialStorage()
            // FTP servers receive the login before they ask for it.
            if let login = plan.login, let space = FTPAddress.space(url) {
                storage.setDefaultCredential(
                    URLCredential(user: login.user, password: login.password, persistence: .forSession), for: space)
            }
            configuration.urlCredentialStorage = storage
        }
        // Kerberos tickets are used only without an explicit login, and only if Negotiate is permitted.
        configuration.usesKerberosTickets =
            plan.login == nil && plan.methods?.contains(NSURLAuthenticationMethodNegotiate) != false
        if trust.insecure, !common.silent {
            StandardError.print("warning: the server's certificate is not checked: anyone could have sent it (--insecure)")
        }
        // The library itself uses a login in the URL that is not UTF-8, which a URLCredential's text cannot express.
        let isForLibrary = plan.login == nil && plan.netrc == nil && plan.methods == nil
        return PreparedLoad(
            url: isForLibrary ? url : url.withoutUserInfo, configuration: configuration,
            answers: ChallengeAnswers(plan, for: url),
            terms: sessionKey(plan, at: url))
    }
}
