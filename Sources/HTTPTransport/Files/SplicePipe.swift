// SPDX-License-Identifier: Apache-2.0

import CLoadingSystem
import LoadingModel
import NIOCore
import Synchronization
import SystemThreads

/// Moves the bytes of a socket through a pipe into a file, one piece at a time.
///
/// If the kernel cannot splice, the bytes are copied.
///
/// The event loop creates this object; only the pump's thread uses and closes it.
final class SplicePipe: Sendable {
    enum Outcome {
        case moved(Int64)
        case noData
        case over
        case socketFailed(SystemFailure)
        case fileFailed(LoadError)
    }

    /// The requested capacity of the pipe: Linux's default limit for unprivileged users (pipe-max-size).
    private static let pipeCapacity: Int64 = 1 << 20

    /// The number of descriptors to reserve: three for this object, and one for the pump's event.
    private static let descriptorCount = 4

    /// A duplicate of the socket's descriptor, which stays open when the channel is closed.
    let socket: CInt
    private let sink: FileSink
    private let pipeIn: CInt
    private let pipeOut: CInt
    private let capacity: Int64
    private let copies = Atomic<Bool>(false)
    /// The reservation of the descriptors, released with this object after the pump's thread has closed them.
    private let room: FileReservation

    /// Returns nil if no descriptors are available, or splicing is impossible; the body is then read and written as usual.
    init?(channel: any Channel, sink: FileSink) {
        guard let room = FileBudget.shared.take(.half, count: Self.descriptorCount) else { return nil }
        let duplicate = try? channel.pipeline.syncOperations.withUnsafeTransportIfAvailable(of: NIOBSDSocket.Handle.self) {
            cls_duplicate($0)
        }
        guard let socket = duplicate.flatMap({ $0 }), socket >= 0 else { return nil }
        var ends: [CInt] = [-1, -1]
        let capacity = cls_pipe(&ends, Self.pipeCapacity)
        guard capacity > 0 else {
            _ = cls_close(socket)
            return nil
        }
        self.room = room
        self.socket = socket
        self.sink = sink
        self.capacity = capacity
        pipeOut = ends[0]
        pipeIn = ends[1]
        sink.pumpEntered()
    }

    func close() {
        _ = cls_close(socket)
        _ = cls_close(pipeIn)
        _ = cls_close(pipeOut)
        sink.pumpLeft()
    }

    func move(upTo limit: Int64) -> Outcome {
        let count = Int(min(limit, capacity))
        if copies.load(ordering: .relaxed) { return copy(upTo: count) }
        let taken = cls_splice_in(socket, pipeIn, count)
        guard taken > 0 else {
            if SystemFailure(CInt(taken)).code == SystemFailure.invalid {
                copies.store(true, ordering: .relaxed)
                return copy(upTo: count)
            }
            return outcome(ofTaking: taken)
        }
        let reserved = sink.reserve(taken)
        guard reserved == 0 else { return .fileFailed(writingFailed(reserved)) }
        let put = cls_splice_out(pipeOut, sink.descriptor, Int(taken))
        if put == taken { return noted(taken) }
        guard SystemFailure(CInt(put)).code == SystemFailure.invalid else { return .fileFailed(writingFailed(CInt(put))) }
        // This file system does not accept splicing from a pipe, so the bytes are read out of the pipe.
        copies.store(true, ordering: .relaxed)
        return write(count: Int(taken)) { target in cls_pipe_read(pipeOut, target, Int(taken)) }
    }

    private func copy(upTo count: Int) -> Outcome {
        write(count: count) { target in cls_receive(socket, target, count) }
    }

    private func write(count: Int, _ fill: (UnsafeMutableRawPointer?) -> Int64) -> Outcome {
        var buffer = ByteBufferAllocator().buffer(capacity: count)
        var taken: Int64 = 0
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: count) { room in
            taken = fill(room.baseAddress)
            return max(0, Int(taken))
        }
        guard taken > 0 else { return outcome(ofTaking: taken) }
        let reserved = sink.reserve(taken)
        guard reserved == 0 else { return .fileFailed(writingFailed(reserved)) }
        let (status, _) = DescriptorWriter.write([buffer], to: sink.descriptor)
        return status < 0 ? .fileFailed(writingFailed(status)) : noted(taken)
    }

    private func outcome(ofTaking status: Int64) -> Outcome {
        if status == 0 { return .over }
        let error = SystemFailure(CInt(status))
        return error.code == SystemFailure.wouldBlock ? .noData : .socketFailed(error)
    }

    private func noted(_ count: Int64) -> Outcome {
        sink.advance(by: count)
        return .moved(count)
    }

    private func writingFailed(_ status: CInt) -> LoadError {
        let error = FileSink.writingFailed(sink.path, status)
        sink.pumpFailed(error)
        return error
    }
}
