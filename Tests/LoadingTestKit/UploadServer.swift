// SPDX-License-Identifier: Apache-2.0

package import Foundation

#if canImport(Glibc)
import Glibc
#endif

/// A small server for resumable uploads (draft-ietf-httpbis-resumable-upload), over HTTP/1.1, with configurable faults.
package final class UploadServer: Sendable {
    /// The server's behavior for one request; the first fault that matches a request applies, once.
    package struct Fault: Codable, Sendable {
        /// The method of the request.
        package var method: String
        /// Resets the connection after this many content bytes were read; the server keeps them.
        package var cut: Int?
        /// Resets the connection before the response, after the whole content was read.
        package var silent: Bool?
        /// Discards this many bytes of the request's content.
        package var loses: Int?
        /// The status of the response, instead of the usual one.
        package var status: Int?
        /// The fields of that response, instead of the usual ones.
        package var fields: [[String]]?
        package var body: String?
        /// Sends no 104.
        package var mute: Bool?
        /// Reads the content and discards it; the response has `status`.
        package var refuses: Bool?
        /// After this many content bytes, neither reads nor responds until the client disconnects or the server is released.
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
        /// The draft version that the server supports; requests with other versions are refused with 400.
        ///
        /// If nil, the server states no version and accepts all versions.
        package var version: Int?
        /// The path of uploads, before their number.
        package var place = "/uploads/"
        /// The `Location` in a 104, if it differs from the path of the upload; `{port}` is replaced with the server's port.
        package var location: String?
        /// The value of `Upload-Limit`.
        package var limits: String?
        /// The header fields of the response to `OPTIONS`; nil if the server does not support the method.
        package var options: [[String]]?
        /// The minimum number of bytes between two 104 responses that report progress.
        package var progressStep: Int?
        /// How many times the first 104 is sent.
        package var announcements = 1
        package var knowsUploads = true
        package var faults: [Fault] = []
        /// The status of the response to a complete upload.
        package var status = 200

        package init(version: Int? = 8, faults: [Fault] = []) {
            self.version = version
            self.faults = faults
        }
    }

    /// A request that the server read.
    package struct Request: Codable, Sendable {
        package var method: String
        package var path: String
        /// Keyed by names in lower case.
        package var fields: [String: String]
        /// The number of content bytes read.
        package var received: Int
        /// The number of bytes of the upload that the server has after the request.
        package var offset: Int
        package var number: Int
        /// Whether the request is or was held.
        package var isHeld: Bool?
        /// The request target: at a proxy, the complete URL.
        package var target: String
    }

    private let directory: ServerDirectory
    private let process: ServerProcess
    package let port: Int
    private let isSecure: Bool
    private let lines: Watched<(text: String, hasEnded: Bool)>

    /// Starts a server; with an identity, it uses TLS.
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
            ServerProcess.Command(
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
        guard let url = URL(string: origin + path) else { preconditionFailure("'\(path)' is not a path") }
        return url
    }

    /// The requests that the server has answered, is holding, or could not read completely.
    package var requests: [Request] {
        // A file, because the output may arrive later than the response.
        Self.requests((try? String(contentsOf: directory.file("requests"), encoding: .utf8)) ?? "")
    }

    /// Waits for `count` requests.
    package func requests(_ count: Int) async throws -> [Request] { try await requests { $0.count >= count } }

    /// Waits for requests that meet a condition.
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
            // A request that was held is reported twice.
            if let index = requests.firstIndex(where: { $0.number == request.number }) {
                requests[index] = request
            } else {
                requests.append(request)
            }
        }
        return requests
    }

    /// The server's content of the upload with this number.
    package func content(of number: Int = 1) throws -> Data { try Data(contentsOf: directory.file("upload-\(number)")) }
    /// Whether the upload was completed.
    package func isComplete(_ number: Int = 1) -> Bool {
        FileManager.default.fileExists(atPath: directory.file("complete-\(number)").path)
    }

    /// Releases all held requests, permanently.
    package func release() { process.signal(SIGUSR1) }

    package func stop() { process.stop(SIGKILL) }

    deinit { stop() }
}
