// SPDX-License-Identifier: Apache-2.0

import HTTPTransport
import LoadingModel
import NIOCore
import TransportMachines

/// The transfer on the data connection.
extension FTPConversation {
    /// Returns the next piece of the retrieved file, or nil when the whole file has arrived and the server has confirmed the
    /// transfer.
    func next() async throws(LoadError) -> ByteBuffer? {
        while !machine.isOver || !actions.isEmpty {
            if let data, !load.control.isSuspended, data.readableBytes > 0 {
                try load.control.check()
                let piece = data.take(Self.pieceSize)
                count += Int64(piece.readableBytes)
                load.control.markProgress(.now())
                return piece
            }
            checkData()
            if try await !advance() {
                data?.read(upTo: 0, isHeld: load.control.isSuspended)
                if data.map({ $0.readableBytes == 0 || load.control.isSuspended }) ?? true { await load.control.wait() }
            }
        }
        return nil
    }

    private func checkData() {
        guard let data, !hasReportedDataEnd, data.readableBytes == 0 else { return }
        if data.hasEnded, data.failure == nil {
            hasReportedDataEnd = true
            // Some servers confirm the transfer only after the client has closed its side of the data connection.
            data.close()
            tell(.dataEnded(count))
        } else if data.failure != nil {
            dataWasLost(nil)
        }
    }

    /// Sends the body from an offset, and waits until the server has stored it.
    func store(_ body: OutgoingBody, from offset: Int64) async throws(LoadError) {
        let pieces = UploadPieces(body, from: offset, in: load)
        defer { pieces.close() }
        while let piece = try await pieces.next() {
            try await load.control.waitWhileSuspended()
            let size = Int64(piece.readableBytes)
            try await write(piece)
            count += size
            load.transaction?.sentBytes = count
            load.control.markProgress(.now())
            if load.wants(.sentBytes) { load.tellSent(size, total: count) }
        }
        try await pieces.check()
        var isEnded = false
        data?.closeOutput { [control = load.control] in
            isEnded = true
            control.wake()
        }
        while !isEnded { if try await !advance() { await load.control.wait() } }
        if !hasReportedDataEnd {
            hasReportedDataEnd = true
            tell(.dataEnded(count))
        }
        while !machine.isOver || !actions.isEmpty { if try await !advance() { await load.control.wait() } }
    }

    private func write(_ piece: ByteBuffer) async throws(LoadError) {
        var isTaken: Bool?
        data?.write(piece) { [control = load.control] in
            isTaken = $0
            control.wake()
        }
        while isTaken == nil { if try await !advance() { await load.control.wait() } }
        guard isTaken == false else { return }
        // If a reply of the server explains the loss, that reply's error is thrown here instead of the error below.
        if !hasReportedDataEnd { dataWasLost(nil) }
        while !machine.isOver || !actions.isEmpty { if try await !advance() { await load.control.wait() } }
        throw LoadError(.connectionLost, "the data connection was lost")
    }
}
