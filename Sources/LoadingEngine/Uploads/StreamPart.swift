//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import FoundationEssentials
import LoadingModel
import Synchronization

/// So many bytes of a stream, which may have more.
final class StreamPart: BodyStream {
    private let stream: any BodyStream
    private let left: Mutex<Int64>

    init(_ stream: any BodyStream, count: Int64) {
        self.stream = stream
        left = Mutex(count)
    }

    func read(upTo count: Int, reply: @escaping @Sendable (Result<Data, any Error>) -> Void) {
        let most = left.withLock { Int(min(Int64(count), $0)) }
        guard most > 0 else { return reply(.success(Data())) }
        stream.read(upTo: most) { result in
            if case .success(let data) = result { self.left.withLock { $0 -= Int64(data.count) } }
            reply(result)
        }
    }

    func close() { stream.close() }
}
