// SPDX-License-Identifier: Apache-2.0

package import HTTPRules
package import LoadingModel

/// The part of a background session's configuration that the daemon needs.
package struct BackgroundSettings: Sendable {
    /// The location of one of the session's stores.
    package enum Store: Sendable, Hashable {
        /// The session has no such store.
        case none
        /// In memory: lasts as long as the daemon has the session.
        case memory
        /// An absolute path.
        case file(String)
    }

    /// A credential in the program's storage.
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

    /// How to start a program for its session's events.
    package enum Launch: Sendable, Hashable {
        /// The executable and its arguments, in a working directory.
        case arguments([String], directory: String?)
        /// A unit of the user's service manager.
        case systemdUnit(String)
        /// An activatable name on the session bus.
        case dBusName(String)
    }

    package var policy = SessionPolicy()
    package var proxies: ProxyRules?
    /// The absolute paths in the program's `SSL_CERT_FILE` and `SSL_CERT_DIR`, if its session has no trust roots of its own.
    package var rootFile: String?
    package var rootDirectories: [String] = []
    package var security = AppTransportSecurity.strict
    package var cookies = Store.none
    package var credentials = Store.none
    package var strictTransportSecurity = Store.none
    /// The credentials that the program has only in memory, not in a file.
    package var knownCredentials: [KnownCredential] = []
    package var isDiscretionary = false
    package var sendsLaunchEvents = true
    package var launch: Launch?

    package init() {}
}
