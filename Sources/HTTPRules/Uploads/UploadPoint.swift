// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

/// The state of an upload that can be continued.
package struct UploadPoint: Hashable, Sendable {
    /// The upload resource.
    package var resource: URL
    package var version: UploadVersion
    /// The length of the whole body in bytes; nil if unknown.
    package var length: Int64?
    /// The number of bytes that the server has acknowledged.
    ///
    /// The server is asked for its current offset before the upload continues.
    package var acknowledged: Int64
    package var limits = UploadLimits()
    /// The time when the server discards the upload, in seconds since the reference date; nil if unknown.
    package var expiry: Double?
}
