//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

extension Stream {
    /// Makes two streams that are bound: what is written to one is read from the other.
    ///
    /// It is how a program streams what it makes bit by bit as the body of a request: the input stream goes to the task, by
    /// ``URLRequest/httpBodyStream`` or the delegate's `needNewBodyStream`, and the program writes to the output stream.
    ///
    /// Both are to be opened. `write` takes as many bytes as there is room for, and waits where there is none; `read` waits where nothing was
    /// written. In a run loop where a stream is scheduled its delegate is told when neither would wait. Once the output stream is closed, or
    /// released, the reader finds the end behind what was written. Once the input stream is, `write` returns -1, and the output stream's error
    /// is `EPIPE`; so it is when the task ended that it was given to.
    ///
    /// Apple's function takes `AutoreleasingUnsafeMutablePointer`s, which only Apple's platforms have; calls with `&input` are the same.
    ///
    /// - Parameters:
    ///   - bufferSize: How many bytes are written at most before some are read; 0 and less count as 1.
    ///   - inputStream: Where the stream to read from is stored; nil where it is not wanted, so that every write fails.
    ///   - outputStream: Where the stream to write to is stored; nil where it is not wanted, so that the reader is at the end.
    public static func getBoundStreams(
        withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
        outputStream: UnsafeMutablePointer<OutputStream?>?
    ) {
        let pipe = StreamPipe(capacity: bufferSize)
        let (input, output) = (PipeInputStream(pipe), PipeOutputStream(pipe))
        inputStream?.pointee = input
        outputStream?.pointee = output
    }
}
