//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Which cookies are accepted, as in `HTTPCookie.AcceptPolicy`.
package enum CookieAcceptPolicy: Sendable {
    case always
    case never
    case onlyFromMainDocumentDomain
}
