// SPDX-License-Identifier: Apache-2.0

/// Which cookies are accepted, as in `HTTPCookie.AcceptPolicy`.
package enum CookieAcceptPolicy: Sendable {
    case always
    case never
    case onlyFromMainDocumentDomain
}
