// SPDX-License-Identifier: Apache-2.0

/// Verifies the checksum of an entry's body, in steps, so that the queue can run other work in between.
struct BodyCheck: Sendable {
    /// The version of a file that a check result applies to.
    struct Subject: Hashable, Sendable {
        /// The file's stamp, which changes on every write; only caches write the file.
        var stamp: FileTime.Stamp
        var preamble: CacheEntryFile.Preamble
    }

    private static let pieceSize: Int64 = 1 << 20

    let name: CacheEntryName
    let file: CacheFile
    let preamble: CacheEntryFile.Preamble
    private var checksum = ContentChecksum()
    private var offset: Int64 = 0

    init(_ name: CacheEntryName, _ file: CacheFile, _ preamble: CacheEntryFile.Preamble) {
        self.name = name
        self.file = file
        self.preamble = preamble
    }

    /// Checks the next piece, waiting for the disk; returns nil if more pieces follow, otherwise the result.
    mutating func step() -> Bool? {
        let count = Int(min(Self.pieceSize, preamble.bodyLength - offset))
        guard let piece = UnsafeMutableRawBufferPointer.allocated(max(1, count)) else { return false }
        defer { piece.deallocateAllocated() }
        let part = UnsafeMutableRawBufferPointer(rebasing: piece[..<count])
        let place = Int64(CacheEntryFile.preambleLength) + offset
        guard (try? file.read(into: part, at: place, waiting: true)) != nil else { return false }
        checksum.update(UnsafeRawBufferPointer(part))
        offset += Int64(count)
        return offset < preamble.bodyLength ? nil : checksum.value == preamble.bodyChecksum
    }
}
