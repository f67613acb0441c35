//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
package import LoadingModel

/// Why a server's certificate is not trusted.
package struct TrustFailure: Error, Sendable, Hashable {
    package var kind: LoadError.Kind
    package var message: String
}
