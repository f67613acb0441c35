// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import HTTPTransport
import LoadingModel
import LoadingTestKit
import Testing

@Suite struct BodyFileTests {
    enum Outcome: Equatable, Sendable {
        case sent([UInt8])
        case failed(LoadError.Kind)
    }

    /// A change to a file of 1,000 bytes after the request was composed, and the expected outcome.
    struct Change: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var outcome: Outcome
        var make: @Sendable (URL) throws -> Void

        init(_ description: String, _ outcome: Outcome, _ make: @escaping @Sendable (URL) throws -> Void) {
            testDescription = description
            self.outcome = outcome
            self.make = make
        }
    }

    private static let content = [UInt8](repeating: 1, count: 1_000)
    private static let other = [UInt8](repeating: 2, count: 1_000)

    static let changes = [
        Change("none", .sent(content)) { _ in },
        Change("it grows", .failed(.cannotOpenFile)) { file in
            let handle = try FileHandle(forWritingTo: file)
            try handle.seekToEnd()
            try handle.write(contentsOf: other)
            try handle.close()
        },
        Change("it shrinks", .failed(.cannotOpenFile)) { file in #expect(truncate(file.path, 999) == 0) },
        Change("it is removed", .failed(.fileDoesNotExist)) { file in try FileManager.default.removeItem(at: file) },
        // The new file is complete when it replaces the old one, because `Data.write(options: .atomic)` renames it.
        Change("one of the same length takes its place", .sent(other)) { file in
            try Data(other).write(to: file, options: .atomic)
        },
        Change("a longer one takes its place", .failed(.cannotOpenFile)) { file in
            try Data(other + [3]).write(to: file, options: .atomic)
        },
        Change("a directory takes its place", .failed(.fileIsDirectory)) { file in
            try FileManager.default.removeItem(at: file)
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
        },
    ]

    private static func find(_ path: String, as version: FileVersion? = nil) throws(LoadError) -> BodyFile {
        guard case .file(let body) = try BodyFile.findNow(path: path, as: version) else {
            throw LoadError(.unknown, "the size of the file is not exact")
        }
        return body
    }

    @Test(arguments: changes) func `the body has the announced length and comes from a single file`(_ change: Change) throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        let body = try Self.find(file.path)
        #expect(body.length == 1_000)
        try change.make(file)
        let outcome: Outcome
        do throws(LoadError) {
            outcome = .sent(Array(try body.openNow().readNow(offset: 0, count: 1_000).get().readableBytesView))
        } catch {
            outcome = .failed(error.kind)
        }
        #expect(outcome == change.outcome)
    }

    @Test(arguments: [changes[0], changes[4]]) func `only the requested version of a file is sent`(_ change: Change) throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(Self.content, to: "body")
        var facts = stat()
        try #require(stat(file.path, &facts) == 0)
        let changed = Int64(facts.st_mtim.tv_sec) * 1_000_000_000 + Int64(facts.st_mtim.tv_nsec)
        let version = FileVersion(size: 1_000, changed: changed, inode: UInt64(facts.st_ino))
        let body = try Self.find(file.path, as: version)
        try change.make(file)
        let isSame = change.testDescription == "none"
        for opens in [true, false] {
            do throws(LoadError) {
                let length = opens ? try body.openNow().length : try Self.find(file.path, as: version).length
                #expect(length == 1_000 && isSame)
            } catch {
                #expect(!isSame && error.kind == .cannotOpenFile && error.message.contains("create the upload again"))
            }
        }
    }
}
