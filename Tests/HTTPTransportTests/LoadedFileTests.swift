// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPTransport
import LoadingModel
import LoadingTestKit
import NIOCore
import NIOPosix
import Testing

@Suite struct LoadedFileTests {
    private static let content = [UInt8](repeating: 1, count: 1_000)
    private static let other = [UInt8](repeating: 2, count: 1_000)

    private enum Outcome: Equatable {
        case read([UInt8])
        case failed(LoadError.Kind)
    }

    private static func read(_ file: LoadedFile, at offset: Int64) async throws -> Outcome {
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        return try await loop.flatSubmit { () -> EventLoopFuture<Outcome> in
            let promise = loop.makePromise(of: Outcome.self)
            file.read(offset: offset, count: 500, on: loop) { result in
                switch result {
                case .success(let part): promise.succeed(.read(Array(part.readableBytesView)))
                case .failure(let error): promise.succeed(.failed(error.kind))
                }
            }
            return promise.futureResult
        }.get()
    }

    private static func openCount(of file: URL) throws -> Int {
        let names = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        return names.count { (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)")) == file.path }
    }

    @Test func `few of many files are open, and all can be read to the end`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Self.content, to: "file").resolvingSymlinksInPath()
        var files: [LoadedFile] = []
        for _ in 0..<(LoadedFile.maximumOpen + 20) { files.append(try LoadedFile.openNow(path: path.path)) }
        #expect(try Self.openCount(of: path) <= LoadedFile.maximumOpen)
        for file in files {
            #expect(file.length == 1_000)
            #expect(try await Self.read(file, at: 500) == .read([UInt8](repeating: 1, count: 500)))
        }
        #expect(try Self.openCount(of: path) <= LoadedFile.maximumOpen)
    }

    /// The beginning of one file followed by the end of another would be content that was never written.
    @Test func `two files are never read as one, whether or not they are kept open`() async throws {
        let directory = try TemporaryDirectory()
        let path = try directory.write(Self.content, to: "file").resolvingSymlinksInPath()
        var files: [LoadedFile] = []
        for _ in 0..<(LoadedFile.maximumOpen + 20) { files.append(try LoadedFile.openNow(path: path.path)) }
        try Data(Self.other).write(to: path, options: .atomic)
        var kept = 0
        for file in files {
            switch try await Self.read(file, at: 500) {
            case .read(let part):
                kept += 1
                #expect(part == [UInt8](repeating: 1, count: 500))
            case .failed(let kind): #expect(kind == .cannotOpenFile)
            }
        }
        #expect(kept <= LoadedFile.maximumOpen)
        #expect(try await Self.read(LoadedFile.openNow(path: path.path), at: 0) == .read([UInt8](repeating: 2, count: 500)))
    }
}
