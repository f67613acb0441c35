//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import FoundationEssentials

/// Where and how an upload is continued.
package struct UploadPoint: Hashable, Sendable {
    /// The upload resource.
    package var resource: URL
    package var version: UploadVersion
    /// Bytes of the whole body; nil where that is not known.
    package var length: Int64?
    /// So many the server said it has: it is asked again.
    package var acknowledged: Int64
    package var limits: UploadLimits
    /// When the server forgets the upload, in seconds since the reference date; nil where it has not said so.
    package var expiry: Double?

    package init(
        resource: URL, version: UploadVersion, length: Int64?, acknowledged: Int64, limits: UploadLimits = UploadLimits(),
        expiry: Double? = nil
    ) {
        self.resource = resource
        self.version = version
        self.length = length
        self.acknowledged = acknowledged
        self.limits = limits
        self.expiry = expiry
    }
}
