//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Crypto
package import FoundationEssentials
package import LoadingModel

extension ClientIdentity {
    /// The SHA-256 fingerprint of the client's own certificate.
    package var fingerprint: Data? { certificates.first.map { Data(SHA256.hash(data: $0)) } }
}
