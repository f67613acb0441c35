// SPDX-License-Identifier: Apache-2.0

import HTTPWire
package import LoadingModel
import NIOCore

/// Moves large cleartext downloads from the socket into the file without copying them into the process (``SplicePump``).
extension Exchange {
    /// The minimum number of bytes for a pump: for fewer bytes, setting up a pump costs more than it saves.
    private static let spliceThreshold: Int64 = 4_194_304

    /// The state of a pump, as reported by its callbacks.
    private final class Run {
        var moved: Int64 = 0
        var end: SplicePump.End?
    }

    /// Whether the rest of the body is eligible for a pump: in cleartext, of known length, and large.
    package var maySplice: Bool {
        guard case .length(let length) = framing, !facts.isInTLS, carrier?.mayBypass == true, !isOver,
            bodyFile.isSettled
        else { return false }
        return length - record.responseBodyBytes >= Self.spliceThreshold
    }

    /// Moves the rest of the body into a file, at the file's current position.
    ///
    /// - Parameters:
    ///   - sink: The file.
    ///   - progress: Called with the number of bytes added to the file since the last call.
    /// - Throws: The failure of the load or of the body.
    /// - Returns: false if the rest of the body must be read and written as usual; some bytes may already be in the file.
    package func splice(
        into sink: FileSink, progress: (Int64) -> Void
    ) async throws(LoadError) -> Bool {
        guard case .length(let length) = framing, let carrier, let channel = carrier.beginBypass(of: self) else { return false }
        bypass(true)
        while let piece = takeBuffered() {
            try await sink.write(piece, in: control)
            progress(Int64(piece.readableBytes))
        }
        try await sink.wait(in: control, for: sink.flush)
        try control.check()
        let run = Run()
        let pump = SplicePump.start(
            on: channel, into: sink, count: length - record.responseBodyBytes,
            progress: { [control] moved in
                run.moved = moved
                control.markProgress(.now())
                control.wake()
            },
            ended: { [control] end in
                run.end = end
                control.wake()
            }
        )
        guard let pump else {
            bypass(false)
            carrier.endBypass(of: self, moved: 0)
            updateReading()
            return false
        }
        let end = await supervise(pump, run, sink, on: channel.eventLoop, progress)
        try settle(end, on: carrier, length)
        return true
    }

    /// Waits for the pump, and passes the load's suspension and cancellation to it.
    ///
    /// After the load has failed or was cancelled, this method waits only for a short time: ending the sink waits for the pump.
    private func supervise(
        _ pump: SplicePump, _ run: Run, _ sink: FileSink, on loop: any EventLoop, _ progress: (Int64) -> Void
    ) async -> SplicePump.End {
        var reported: Int64 = 0
        var isPaused = false
        var patience: Scheduled<Void>?
        defer { patience?.cancel() }
        while true {
            if let end = run.end {
                if end.moved > reported { progress(end.moved - reported) }
                return end
            }
            if run.moved > reported {
                progress(run.moved - reported)
                reported = run.moved
            }
            if control.failure != nil {
                pump.cancel()
                let deadline = sink.endDeadline(after: FileSink.patience)
                guard NIODeadline.now() < deadline else { return .cancelled(reported) }
                let bound = NIOLoopBound(control, eventLoop: loop)
                patience = patience ?? loop.scheduleTask(deadline: deadline) { bound.value.wake() }
            }
            if control.isSuspended != isPaused {
                isPaused = control.isSuspended
                if isPaused { pump.pause() } else { pump.resume() }
            }
            await control.wait()
        }
    }

    private func settle(_ end: SplicePump.End, on carrier: any ExchangeCarrier, _ length: Int64) throws(LoadError) {
        switch end {
        case .finished(let moved):
            carrier.endBypass(of: self, moved: moved)
        case .cancelled:
            cancel()
            try control.check()
            throw .cancelled
        case .peerClosed:
            cancel()
            throw LoadError(
                .connectionLost,
                "receiving the response: the server closed the connection after \(record.responseBodyBytes + end.moved) of \(length) bytes"
            )
        case .socketFailed(_, let error):
            cancel()
            throw LoadError(.connectionLost, "receiving the response: \(error)", cause: error)
        case .fileFailed(_, let error):
            cancel()
            throw error
        }
    }
}

extension SplicePump.End {
    /// The number of bytes that the pump moved into the file.
    fileprivate var moved: Int64 {
        switch self {
        case .finished(let moved), .peerClosed(let moved), .cancelled(let moved), .socketFailed(let moved, _),
            .fileFailed(let moved, _):
            moved
        }
    }
}
