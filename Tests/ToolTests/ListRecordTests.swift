// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing

#if canImport(Glibc)
import Glibc
#endif

/// The exact output of `list --json`.
@Suite(.timeLimit(.minutes(1)))
struct ListRecordTests {
    /// A daemon's answers to the hello message and to the first request, which requests a list, in version 2 of the protocol.
    private static let answers = [
        "AgwBB3dlbGNvbWUCAQI=",
        "ArYBAQl0cmFuc2ZlcnMKogF7AQEDAhAvdXNyL2Jpbi9wcm9ncmFtAwRtYWluBAEHBRlodHRwczovL2V4YW1wbGUuY29tL2ElMjBiBwdydW5uaW5nCBp1"
            + "bnRpbCAyMTAwLTAxLTMxVDA4OjAwOjAwWgkIAwIRlAQCIygKCEHFOsQnQAAACwfDpCAiZCIBJQEIf/////////8CAi9wBAEBBgEBBwVlbmRlZAoI"
            + "AAAAAAAAAAAPAQEQAQE=",
    ].compactMap { Data(base64Encoded: $0) }

    private static let list = #"""
        [
          {
            "created" : "2023-07-29T17:47:58Z",
            "description" : "ä \"d\"\u0001",
            "expectedToReceive" : 9000,
            "expectedToSend" : -1,
            "isUpload" : false,
            "number" : 3,
            "program" : "/usr/bin/program",
            "reason" : "until 2100-01-31T08:00:00Z",
            "received" : 4500,
            "sent" : 0,
            "session" : "main",
            "state" : "running",
            "task" : 7,
            "url" : "https://example.com/a%20b"
          },
          {
            "created" : "2001-01-01T00:00:00Z",
            "expectedToReceive" : -1,
            "expectedToSend" : -1,
            "isUpload" : true,
            "number" : 9223372036854775807,
            "program" : "/p",
            "reason" : "",
            "received" : 0,
            "sent" : 0,
            "session" : "",
            "state" : "ended",
            "task" : 1,
            "url" : ""
          }
        ]

        """#

    /// Accepts one connection and sends the next answer for each received frame.
    private static func serve(_ path: String, _ answers: [Data]) throws {
        let listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafePointer(to: address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(result == 0 && listen(listener, 1) == 0)
        Thread.detachNewThread {
            let connection = accept(listener, nil, nil)
            for answer in answers {
                var head = [UInt8](repeating: 0, count: 4)
                guard recv(connection, &head, 4, Int32(MSG_WAITALL)) == 4 else { break }
                var payload = [UInt8](repeating: 0, count: head.reduce(0) { $0 << 8 | Int($1) })
                guard recv(connection, &payload, payload.count, Int32(MSG_WAITALL)) == payload.count else { break }
                let frame = withUnsafeBytes(of: UInt32(answer.count).bigEndian) { Array($0) } + answer
                _ = send(connection, frame, frame.count, Int32(MSG_NOSIGNAL))
            }
            // This call returns when the tool closes the connection.
            var rest: UInt8 = 0
            _ = recv(connection, &rest, 1, 0)
            close(connection)
            close(listener)
        }
    }

    @Test func `the output for a list of transfers is unchanged`() async throws {
        try await withBackgroundTool { (place) async throws in
            let folder = place.home.file("r/urlloading")
            try FileManager.default.createDirectory(
                at: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
            try Self.serve(folder.path + "/urlsessiond.socket", Self.answers)
            #expect(try await place.run("list", "--json").text == Self.list)
        }
    }
}
