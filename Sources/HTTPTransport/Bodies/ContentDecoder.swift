//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import HTTPWire
package import NIOCore

/// Undoes the content codings of a body while it arrives (RFC 9110, section 8.4), and those that it was sent in (RFC 9112, section 7.2).
///
/// Bytes are pushed as they come and pulled as they are wanted: nothing is decoded ahead of demand, so that a body that expands a
/// thousandfold takes no more memory than one that does not.
///
/// ```
/// decoder.push(bytes)
/// while let piece = try decoder.next() { deliver(piece) }
/// …                       // at the end of the body, once next() has answered nil:
/// try decoder.finish()
/// ```
///
/// Lenient as browsers and curl are: "deflate" is accepted with and without zlib's wrapping, gzip members and frames of zstd may follow
/// each other, an empty body is fine, and what follows the end of a coding is ignored. Confined to the session's event loop.
package final class ContentDecoder {
    /// How far a body may expand: beyond `floor` decoded bytes, at most `ratio` times what was received.
    package struct Limit: Sendable, Hashable {
        package var ratio: Int64
        package var floor: Int64

        package init(ratio: Int64, floor: Int64) {
            self.ratio = ratio
            self.floor = floor
        }
    }

    /// curl stops at five, too.
    package static let maximumCodings = 5
    /// The most that ``next()`` returns at once.
    package static let pieceSize = 65_536
    /// What a call of ``next()`` may decode or take in without anything coming of it: codings may be nested around nothing.
    private static let workPerCall = 262_144
    /// What lies between two codings may expand as far as deflate can (1,032 times), whatever limit was set for the whole, and however
    /// far the coding could.
    private static let intermediateLimit = Limit(ratio: 1_100, floor: 16 << 20)

    /// The outermost coding, which is undone first, comes first.
    private let stages: [CodingStage]
    private let limit: Limit?
    private let share: ExpansionBudget.Share?
    private var pushed = CircularBuffer<ByteBuffer>(initialCapacity: 2)
    private var failure: DecodingFailure?
    private var workLeft = 0

    /// Bytes pushed so far, and bytes given out so far.
    package private(set) var codedBytes: Int64 = 0
    package private(set) var decodedBytes: Int64 = 0

    /// Takes the values of the `Content-Encoding` fields, each of which may list several codings in the order in which they were applied,
    /// and what was done to the message after them.
    ///
    /// A body that is collected in memory has a budget in common with others. Answers nil where there is nothing to undo. Content codings of which one is unknown are left to the app, all of them; gzip and
    /// deflate are known, and those of libraries that the caller names.
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

    /// Whether a call of ``next()`` may take longer than a turn of an event loop: to be made on another thread.
    package var isSlow: Bool { stages.contains { $0.isSlow } }

    package func push(_ input: ByteBuffer) {
        codedBytes += Int64(input.readableBytes)
        guard input.readableBytes > 0, stages.last?.isOver == false else { return }
        pushed.append(input)
    }

    /// Decodes at most ``pieceSize`` bytes of what was pushed; nil when more has to be pushed first.
    ///
    /// An empty piece says that this took long and nothing came of it so far: it is to be called again.
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

    /// Says that the body is over.
    ///
    /// Call it once ``next()`` has answered nil.
    package func finish() throws(DecodingFailure) {
        if let failure { throw failure }
        for stage in stages.reversed() {
            // What is around a coding that is over is of no interest, as what follows it.
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
            // Its end may come without another byte; what is around it is not looked at any more.
            if stage.isOver { continue }
            if index == 0 {
                guard workLeft > 0 else { return ByteBuffer() }
                guard let input = pushed.popFirst() else { return nil }
                workLeft -= input.readableBytes
                stage.feed(input)
            } else {
                guard let input = try pull(from: index - 1) else { return nil }
                // Its own work was too long.
                guard input.readableBytes > 0 else { return input }
                workLeft -= input.readableBytes
                stage.feed(input)
                guard workLeft > 0 else { return ByteBuffer() }
            }
        }
    }

    private func check(_ stage: CodingStage, against limit: Limit?) throws(DecodingFailure) {
        guard let limit, stage.produced > limit.floor else { return }
        // What the caller's limit speaks of is the body as received.
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
