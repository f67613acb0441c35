// SPDX-License-Identifier: Apache-2.0

package import HTTPWire
package import NIOCore

/// Decodes the content codings of a body as it arrives (RFC 9110, section 8.4), and its transfer codings (RFC 9112, section 7.2).
///
/// Bytes are pushed as they arrive and pulled on demand: nothing is decoded ahead of demand, so that a body that expands a
/// thousandfold takes no more memory than any other.
///
/// ```
/// decoder.push(bytes)
/// while let piece = try decoder.next() { deliver(piece) }
/// …                       // at the end of the body, after next() has returned nil:
/// try decoder.finish()
/// ```
///
/// The decoder is as lenient as browsers and curl: "deflate" is accepted with and without the zlib wrapper, gzip members and zstd
/// frames may be concatenated, an empty body is valid, and data after the end of a coding is ignored.
///
/// Confined to the session's event loop.
package final class ContentDecoder {
    /// How far a body may expand: to `floor` bytes, or to `ratio` times the received bytes, whichever is more.
    package struct Limit: Sendable, Hashable {
        package var ratio: Int64
        package var floor: Int64

        package init(ratio: Int64, floor: Int64) {
            self.ratio = ratio
            self.floor = floor
        }
    }

    /// The maximum number of codings of one body, the same as curl's.
    package static let maximumCodings = 5
    /// The maximum size of a piece that ``next()`` returns.
    package static let pieceSize = 65_536
    /// The number of processed bytes after which one call of ``next()`` returns even if it has produced no output.
    ///
    /// Nested codings can decode to nothing, however long they are.
    private static let workPerCall = 262_144
    /// The expansion limit of every coding except the innermost, slightly above the maximum of deflate (1,032 times).
    ///
    /// It is the same for all codings, and does not depend on the limit for the whole body.
    private static let intermediateLimit = Limit(ratio: 1_100, floor: 16 << 20)

    /// The outermost coding, which is decoded first, comes first.
    private let stages: [CodingStage]
    private let limit: Limit?
    private let share: ExpansionBudget.Share?
    private var pushed = CircularBuffer<ByteBuffer>(initialCapacity: 2)
    private var failure: DecodingFailure?
    private var workLeft = 0

    /// The number of bytes pushed so far (coded), and returned so far (decoded).
    package private(set) var codedBytes: Int64 = 0
    package private(set) var decodedBytes: Int64 = 0

    /// Takes the values of the `Content-Encoding` fields, and the transfer codings, which were applied after the content codings.
    ///
    /// Each field may list several codings, in the order in which they were applied. Bodies that are collected in memory share a
    /// budget. Returns nil if there is nothing to decode. If any content coding is unknown, no content coding is decoded, and the
    /// app receives the body encoded. The known codings are gzip, deflate, and those of the libraries that the caller passes.
    package init?(
        encodings: [String], transfer: [TransferCodings.Compression] = [], libraries: [LibraryCoding] = [], limit: Limit? = nil,
        budget: ExpansionBudget? = nil
    ) throws(DecodingFailure) {
        var codings: [CodingStage] = []
        var count = transfer.count
        var isKnown = true
        for list in encodings {
            for name in list.split(separator: ",") {
                let name = Self.trimmed(name)
                switch name {
                case "", "identity": continue
                case "gzip", "x-gzip": codings.append(CodingStage(.gzip))
                case "deflate": codings.append(CodingStage(.deflate))
                default:
                    let library = libraries.first { $0.name == name }
                    if let library { codings.append(CodingStage(library)) } else { isKnown = false }
                }
                count += 1
            }
        }
        guard count <= Self.maximumCodings else { throw .tooManyCodings(count) }
        if !isKnown { codings = [] }
        codings += transfer.map { CodingStage($0 == .gzip ? .gzip : .deflate) }
        guard !codings.isEmpty else { return nil }
        stages = codings.reversed()
        self.limit = limit
        share = budget.map { ExpansionBudget.Share(of: $0) }
    }

    /// Whether a call of ``next()`` may take longer than a turn of an event loop, and should therefore run on another thread.
    package var isSlow: Bool { stages.contains { $0.isSlow } }

    package func push(_ input: ByteBuffer) {
        codedBytes += Int64(input.readableBytes)
        guard input.readableBytes > 0, stages.last?.isOver == false else { return }
        pushed.append(input)
    }

    /// Decodes at most ``pieceSize`` bytes of the input; returns nil if more has to be pushed first.
    ///
    /// An empty piece means that decoding has taken long without producing output; call it again.
    package func next() throws(DecodingFailure) -> ByteBuffer? {
        if let failure { throw failure }
        workLeft = Self.workPerCall
        do {
            guard let piece = try pull(from: stages.count - 1) else { return nil }
            decodedBytes += Int64(piece.readableBytes)
            try checkShare()
            return piece
        } catch {
            failure = error
            pushed.removeAll()
            throw error
        }
    }

    /// Checks that the body is complete; call it after ``next()`` has returned nil.
    package func finish() throws(DecodingFailure) {
        if let failure { throw failure }
        for stage in stages.reversed() {
            // After an inner coding has ended, the rest of the outer codings does not matter, because data after the end are
            // ignored.
            if stage.isOver { return }
            guard stage.mayEndHere else { throw .truncated }
        }
    }

    private func pull(from index: Int) throws(DecodingFailure) -> ByteBuffer? {
        let stage = stages[index]
        while true {
            if stage.isOver {
                pushed.removeAll()
                return nil
            }
            if let piece = try stage.produce(upTo: Self.pieceSize) {
                let isLast = index == stages.count - 1
                try check(stage, against: isLast ? limit : Self.intermediateLimit)
                return piece
            }
            // The stage may end without producing another byte; the codings outside it are then ignored.
            if stage.isOver { continue }
            if index == 0 {
                guard workLeft > 0 else { return ByteBuffer() }
                guard let input = pushed.popFirst() else { return nil }
                workLeft -= input.readableBytes
                stage.feed(input)
            } else {
                guard let input = try pull(from: index - 1) else { return nil }
                // An empty piece means that the inner call used up the work limit, or that its decoding takes a long time.
                guard input.readableBytes > 0 else { return input }
                workLeft -= input.readableBytes
                stage.feed(input)
                guard workLeft > 0 else { return ByteBuffer() }
            }
        }
    }

    private func check(_ stage: CodingStage, against limit: Limit?) throws(DecodingFailure) {
        guard let limit, stage.produced > limit.floor else { return }
        // The caller's limit is relative to the size of the body as received.
        let coded = stage === stages.last ? codedBytes : stage.consumed
        guard stage.produced / max(limit.ratio, 1) < max(coded, 1) else {
            throw .bomb(coded: coded, decoded: stage.produced)
        }
    }

    private func checkShare() throws(DecodingFailure) {
        guard let share, let limit else { return }
        guard share.grow(to: decodedBytes - codedBytes.multipliedSaturating(by: max(limit.ratio, 1))) else {
            throw .bombs(coded: codedBytes, decoded: decodedBytes)
        }
    }

    private static func trimmed(_ name: Substring) -> String {
        let isSpace: (Character) -> Bool = { $0 == " " || $0 == "\t" }
        var name = name.drop(while: isSpace)
        while let last = name.last, isSpace(last) { name.removeLast() }
        return name.lowercased()
    }
}
