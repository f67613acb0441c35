// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// When the libraries for HTTP/3 are opened, and what happens without them.
@Suite(.timeLimit(.minutes(2)))
struct HTTP3LibraryTests {
    @Test func `only a request that could use HTTP/3 opens the libraries`() async throws {
        try await SeparateProcess.run("HTTP3LibraryOpening", environment: [:])
    }

    @Test func `without the libraries, other versions are used, and a demand says what to install`() async throws {
        let library = try PreloadedLibrary(source: HTTP3LibraryAbsence.source)
        try await SeparateProcess.run("HTTP3LibraryAbsence", environment: library.environment.mapValues { $0 })
    }
}

private func withLoads(
    _ configure: (URLSessionConfiguration) -> Void = { _ in }, _ test: (URLSession, _ server: URL) async throws -> Void
) async throws {
    let certificates = try TestCertificates.shared.get()
    try await withScriptedServer(identity: certificates.valid, reply: { _ in .ok("body") }) { (server) async throws in
        try await withSession {
            $0.tlsTrustRoots = [certificates.root]
            configure($0)
        } test: { session in
            try await test(session, server.url("/", host: "localhost"))
        }
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("HTTP3LibraryOpening")), .timeLimit(.minutes(1)))
struct HTTP3LibraryOpening {
    private var isOpen: Bool {
        get throws {
            // A file of /proc does not tell its length.
            let maps = try #require(FileHandle(forReadingAtPath: "/proc/self/maps")).readDataToEndOfFile()
            return try #require(String(data: maps, encoding: .utf8)).contains("libngtcp2")
        }
    }

    @Test func `loads over http, and those of sessions without HTTP/3, open nothing`() async throws {
        try await withScriptedServer(reply: { _ in .ok("body") }) { (server) async throws in
            try await withSession { session in _ = try await session.data(from: server.url()) }
        }
        try await withLoads({ $0.connectionOptions.httpVersions = .withoutHTTP3 }) { (session, url) async throws in
            _ = try await session.data(from: url)
        }
        #expect(try !isOpen)
        try await withLoads { (session, url) async throws in _ = try await session.data(from: url) }
        #expect(try isOpen)
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("HTTP3LibraryAbsence")), .timeLimit(.minutes(1)))
struct HTTP3LibraryAbsence {
    /// Hides the libraries.
    static let source = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <string.h>
        void *dlopen(const char *name, int flags) {
            void *(*next)(const char *, int) = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
            return name && strstr(name, "ngtcp2") ? NULL : next(name, flags);
        }
        """

    @Test func `without the libraries`() async throws {
        try await withLoads { (session, url) async throws in
            var request = URLRequest(url: url)
            request.assumesHTTP3Capable = true
            #expect(try await session.data(for: request).0 == Data("body".utf8))
        }
        try await withLoads({ $0.connectionOptions.httpVersions = .http3Only }) { (session, url) async throws in
            let error = await #expect(throws: URLError.self) { _ = try await session.data(from: url) }
            #expect(error?.code == .cannotConnectToHost)
            let words = error?.localizedDescription ?? ""
            #expect(words.contains("install libngtcp2-") && words.contains(" libnghttp3-"), "\(words)")
        }
        let report = try #require(SystemLibraryReport.all().first { $0.name.hasPrefix("libngtcp2.so.") })
        #expect(report.path == nil && report.failure?.contains("install libngtcp2-") == true)
    }
}
