// SPDX-License-Identifier: Apache-2.0

import HTTPWire

/// The output of an FTP server is parsed into the same replies however the output is split.
///
/// The replies are limited in size, and their ports and file sizes are valid.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzFTPReplies(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let input = Array(UnsafeBufferPointer(start: data, count: size))
    let whole = replies([input])
    precondition(replies(input.map { [$0] }) == whole, "different replies if every byte is a piece")
    let middle = input.count / 2
    precondition(replies([Array(input[..<middle]), Array(input[middle...])]) == whole, "different replies if cut in the middle")
    for reply in whole {
        precondition(100...599 ~= reply.code && reply.message.count <= 200)
        precondition(
            reply.message.unicodeScalars.allSatisfy { $0.value >= 32 && $0.value != 127 }, "a message that cannot be printed")
        for port in [reply.passivePort, reply.extendedPassivePort].compactMap({ $0 }) { precondition(1...65_535 ~= port) }
        precondition(reply.number ?? 0 >= 0 && reply.time?.utf8.count ?? 14 >= 14)
    }
    return 0
}

private func replies(_ pieces: [[UInt8]]) -> [FTPReply] {
    var reader = FTPReplyReader()
    var replies: [FTPReply] = []
    do throws(FTPReplyReader.Failure) {
        for piece in pieces {
            reader.append(piece)
            while let reply = try reader.next() { replies.append(reply) }
        }
    } catch {
        // The replies before the failure are compared.
    }
    return replies
}
