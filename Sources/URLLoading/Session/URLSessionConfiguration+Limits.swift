// SPDX-License-Identifier: Apache-2.0

internal import LoadingModel

extension URLSessionConfiguration {
    /// The maximum size in bytes of a body that is collected in memory, for completion handlers and `data(for:)`.
    ///
    /// Default nil: no limit. A load with a longer body fails with `URLError.dataLengthExceedsMaximum`. Not in Apple's API.
    public var maximumResponseBytesInMemory: Int64? {
        get { get { $0.policy.maximumCollectedBytes } }
        set { set { $0.policy.maximumCollectedBytes = newValue } }
    }

    /// The maximum ratio of a body's decoded length to its encoded length, a protection against decompression bombs.
    ///
    /// Default 200. After the first 64 MiB of decoded bytes, a load that exceeds the ratio fails with
    /// `URLError.dataLengthExceedsMaximum`. Not in Apple's API.
    public var maximumDecompressionRatio: Int {
        get { Int(get { $0.policy.maximumDecodingRatio }) }
        set { set { $0.policy.maximumDecodingRatio = Int64(newValue) } }
    }
}
