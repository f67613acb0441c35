// SPDX-License-Identifier: Apache-2.0

import Crypto
package import FoundationEssentials
package import LoadingModel

extension ClientIdentity {
    /// The SHA-256 fingerprint of the client's own certificate.
    package var fingerprint: Data? { certificates.first.map { Data(SHA256.hash(data: $0)) } }
}
