//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A small server of resumable uploads (draft-ietf-httpbis-resumable-upload), over HTTP/1.1, with what goes wrong by order.
package final class UploadServer: Sendable {
    /// What the server does with one request, once; the first that fits a request is taken.
    package struct Fault: Codable, Sendable {
        /// The method it is for.
        package var method: String
        /// The connection is reset when so many bytes of the content were read, which the server keeps.
        package var cut: Int?
        /// The connection is reset before the answer, when all was read.
        package var silent: Bool?
        /// So many of the bytes that were read with this request are forgotten.
        package var loses: Int?
        /// The answer, in place of the usual one.
        package var status: Int?
        /// Fields of that answer, in place of the usual ones.
        package var fields: [[String]]?
        package var body: String?
        /// No 104 is sent.
        package var mute: Bool?
        /// The content is read, and not kept; the answer has `status`.
        package var refuses: Bool?
        /// No more is read after so many bytes of the content, and nothing answered, until the client leaves or the server is released.
        package var holds: Int?

        package init(
            _ method: String, cut: Int? = nil, silent: Bool? = nil, loses: Int? = nil, status: Int? = nil,
            fields: [[String]]? = nil, body: String? = nil, mute: Bool? = nil, refuses: Bool? = nil, holds: Int? = nil
        ) {
            self.method = method
            self.cut = cut
            self.silent = silent
            self.loses = loses
            self.status = status
            self.fields = fields
            self.body = body
            self.mute = mute
            self.refuses = refuses
            self.holds = holds
        }
    }

    package struct Plan: Codable, Sendable {
        /// The version that the server speaks; another is refused with 400.
        ///
        /// Nil: a server that states none, and takes each.
        package var version: Int?
        /// Where uploads are, in front of their number.
        package var place = "/uploads/"
        /// What a 104 says of an upload's place, if not that; `{port}` is the server's.
        package var location: String?
        /// The value of `Upload-Limit`.
        package var limits: String?
        /// After each so many bytes a 104 tells how many there are.
        package var progressStep: Int?
        /// How often the first 104 is sent.
        package var announcements = 1
        package var knowsUploads = true
        package var faults: [Fault] = []
        /// The status of the answer to a whole upload.
        package var status = 200

        package init(version: Int? = 8, faults: [Fault] = []) {
            self.version = version
            self.faults = faults
        }
    }

    /// A request as the server read it.
    package struct Request: Codable, Sendable {
        package var method: String
        package var path: String
        /// By their names in lower case.
        package var fields: [String: String]
        /// Bytes of its content.
        package var received: Int
        /// How many bytes of the upload the server has after it.
        package var offset: Int
        package var number: Int
        /// Whether it is held, or was.
        package var isHeld: Bool?
        /// What it asks for, as its first line has it: to a proxy, a whole URL.
        package var target: String
    }

    private let directory: ServerDirectory
    private let process: ServerProcess
    package let port: Int
    private let isSecure: Bool
    private let lines: Watched<(text: String, hasEnded: Bool)>

    /// Starts a server; one with an identity speaks TLS.
    package init(_ plan: Plan, identity: TestCertificates.Identity? = nil) throws {
        let python = try ServerProcess.program("python3", package: "python3")
        directory = try ServerDirectory()
        let order = try directory.write(try JSONEncoder().encode(plan), to: "plan.json")
        let program = try directory.write(Self.program.utf8, to: "server.py")
        var arguments = [python, program.path, order.path, directory.path]
        if let identity {
            arguments.append(try directory.write(identity.chainPEM.utf8, to: "chain.pem").path)
            arguments.append(try directory.write(identity.keyPEM.utf8, to: "key.pem").path)
        }
        let socket = try ServerProcess.listeningSocket()
        defer { Glibc.close(socket.descriptor) }
        let lines = Watched((text: "", hasEnded: false))
        process = try ServerProcess.start(
            ServerProcess.Order(
                arguments,
                output: .pipe { data in
                    lines.change { lines in
                        lines.text += String(decoding: data, as: UTF8.self)
                        lines.hasEnded = data.isEmpty
                    }
                },
                errors: .file(directory.file("log")), sockets: [socket.descriptor]))
        port = socket.port
        isSecure = identity != nil
        self.lines = lines
    }

    package func url(_ path: String = "/files", host: String? = nil) -> URL {
        let origin = "\(isSecure ? "https" : "http")://\(host ?? (isSecure ? "localhost" : "127.0.0.1")):\(port)"
        guard let url = URL(string: origin + path) else { preconditionFailure("'\(path)' is no path") }
        return url
    }

    /// The requests that were read to their end, or as far as they came.
    package var requests: [Request] { lines.read { Self.requests($0.text) } }

    /// Waits until there are as many.
    package func requests(_ count: Int) async throws -> [Request] { try await requests { $0.count >= count } }

    /// Waits until there are those that are meant.
    package func requests(until isThere: @escaping @Sendable ([Request]) -> Bool) async throws -> [Request] {
        try await lines.value { lines -> [Request]? in
            let found = Self.requests(lines.text)
            return isThere(found) || lines.hasEnded ? found : nil
        }
    }

    private static func requests(_ text: String) -> [Request] {
        var requests: [Request] = []
        for line in text.split(separator: "\n") {
            guard let request = try? JSONDecoder().decode(Request.self, from: Data(line.utf8)) else { continue }
            // One that was held is told of twice.
            if let index = requests.firstIndex(where: { $0.number == request.number }) {
                requests[index] = request
            } else {
                requests.append(request)
            }
        }
        return requests
    }

    /// What the server has of the upload with this number.
    package func content(of number: Int = 1) throws -> Data { try Data(contentsOf: directory.file("upload-\(number)")) }
    /// Whether the upload was completed.
    package func isComplete(_ number: Int = 1) -> Bool {
        FileManager.default.fileExists(atPath: directory.file("complete-\(number)").path)
    }

    /// Lets go of all that is held, for good.
    package func release() { process.signal(SIGUSR1) }

    package func stop() { process.stop(SIGKILL) }

    deinit { stop() }
}
