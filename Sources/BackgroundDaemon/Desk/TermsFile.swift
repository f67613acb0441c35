// SPDX-License-Identifier: Apache-2.0

import BackgroundProtocol
import FoundationEssentials
import LibC

/// The file that stores the user's terms for transfers, beside the list of transfers.
struct TermsFile: Sendable {
    private static let sizeLimit = 64 << 10
    let path: String

    init(in folder: String) { path = folder + "/terms.json" }

    /// Reads the stored terms; nil if no terms are stored.
    ///
    /// - Throws: If the file exists and cannot be read.
    func read() throws(MessageFailure) -> TransferTerms? {
        guard let bytes = SmallFile.contents(of: path, limit: Self.sizeLimit) else {
            guard access(path, F_OK) == 0 || ![ENOENT, ENOTDIR].contains(errno) else { return nil }
            throw .malformed("it is too long, or not a file that belongs to this user and that others cannot write to")
        }
        return try MessageCoding.decodeTerms(bytes)
    }

    func write(_ terms: TransferTerms) -> CInt {
        guard let bytes = try? MessageCoding.encode(terms) else { return EINVAL }
        return SmallFile.replace(path, with: bytes, isLasting: true)
    }
}
