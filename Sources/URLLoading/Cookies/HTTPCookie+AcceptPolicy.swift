// SPDX-License-Identifier: Apache-2.0

import LoadingModel

extension HTTPCookie {
    /// Which cookies a storage accepts.
    ///
    /// Raw values are Apple's.
    public enum AcceptPolicy: UInt, Sendable {
        /// All cookies that the cookie rules allow.
        case always = 0
        /// No cookies.
        case never = 1
        /// Cookies of the main document's site; a request without a main document URL counts as a request for the main document.
        case onlyFromMainDocumentDomain = 2

        init(_ acceptance: SessionPolicy.CookieAcceptance) { self = Self(rawValue: acceptance.rawValue) ?? .never }

        var acceptance: SessionPolicy.CookieAcceptance { SessionPolicy.CookieAcceptance(rawValue: rawValue) ?? .never }
    }
}
