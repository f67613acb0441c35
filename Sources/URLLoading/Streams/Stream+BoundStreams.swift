// SPDX-License-Identifier: Apache-2.0

public import Foundation

extension Stream {
    /// Makes a pair of bound streams: bytes written to the output stream are read from the input stream.
    ///
    /// Use them to stream a request body that the program produces incrementally: give the input stream to the task, through
    /// ``URLRequest/httpBodyStream`` or the delegate's `needNewBodyStream`, and write to the output stream.
    ///
    /// Both streams must be opened. `write` accepts as many bytes as there is space for, and blocks while there is no space; `read`
    /// blocks while there are no bytes. A stream that is scheduled in a run loop calls its delegate when `read` or `write` would
    /// not block. When the output stream is closed or released, the reader reaches the end of the stream after the remaining bytes.
    /// When the input stream is closed or released, or when the task that it was given to ends, `write` returns -1, and the output
    /// stream's error is `EPIPE`.
    ///
    /// Apple's function takes `AutoreleasingUnsafeMutablePointer`s, which exist only on Apple's platforms. Calls with `&input`
    /// compile unchanged.
    ///
    /// - Parameters:
    ///   - bufferSize: The number of bytes that can be written before some are read; at least 1.
    ///   - inputStream: Receives the stream to read from. If it is nil, every write fails.
    ///   - outputStream: Receives the stream to write to. If it is nil, every read reports the end of the stream.
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
