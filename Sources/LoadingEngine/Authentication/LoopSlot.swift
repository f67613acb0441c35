//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import HTTPTransport
import LoadingModel
import NIOCore

/// What a load waits for that comes from another thread.
final class LoopSlot: Sendable {
    private let isFull: NIOLoopBoundBox<Bool>
    private let load: NIOLoopBound<Load>
    private let loop: any EventLoop

    init(_ load: Load) {
        loop = load.session.loop
        isFull = NIOLoopBoundBox(false, eventLoop: loop)
        self.load = NIOLoopBound(load, eventLoop: loop)
    }

    /// From any thread.
    func fill() {
        loop.execute { [self] in
            isFull.value = true
            load.value.control.wake()
        }
    }

    func wait() async throws(LoadError) {
        while !isFull.value {
            try load.value.control.check()
            await load.value.control.wait()
        }
    }
}
