//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPRules
package import LoadingModel

/// What a background session's configuration says, as the daemon needs it.
package struct BackgroundSettings: Sendable {
    /// Where one of the session's stores is.
    package enum Store: Sendable, Hashable {
        /// The session has none.
        case none
        /// In memory: it lasts as long as the daemon has the session.
        case memory
        /// An absolute path.
        case file(String)
    }

    /// A credential that the program has given its storage.
    package struct KnownCredential: Sendable, Hashable {
        package var space: ProtectionSpace
        package var credential: LoadCredential
        package var isDefault: Bool

        package init(space: ProtectionSpace, credential: LoadCredential, isDefault: Bool) {
            self.space = space
            self.credential = credential
            self.isDefault = isDefault
        }
    }

    /// How a program is started for its session's events.
    package enum Launch: Sendable, Hashable {
        /// Its file and arguments, in a working directory.
        case arguments([String], directory: String?)
        /// A unit of the user's service manager.
        case systemdUnit(String)
        /// A name on the session bus that can be activated.
        case dBusName(String)
    }

    package var policy = SessionPolicy()
    package var proxies: ProxyRules?
    /// What `SSL_CERT_FILE` and `SSL_CERT_DIR` name in the program's environment, where its session has no roots of its own; absolute.
    package var rootFile: String?
    package var rootDirectories: [String] = []
    package var security = AppTransportSecurity.strict
    package var cookies = Store.none
    package var credentials = Store.none
    package var strictTransportSecurity = Store.none
    /// Those in memory, which no file has.
    package var knownCredentials: [KnownCredential] = []
    package var isDiscretionary = false
    package var sendsLaunchEvents = true
    package var launch: Launch?

    package init() {}
}
