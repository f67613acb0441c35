// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Three real FTP servers, in cleartext and over TLS.
@Suite(.timeLimit(.minutes(2)))
struct FTPServersTests {
    enum Product: String, CaseIterable, Sendable {
        case vsftpd, proftpd, pyftpdlib

        func start(_ options: SmallServer.FTPOptions) throws -> SmallServer {
            switch self {
            case .vsftpd: try SmallServer.vsftpd(options)
            case .proftpd: try SmallServer.proftpd(options)
            case .pyftpdlib: try SmallServer.pyftpdlib(options)
            }
        }

        /// The user and password in the URLs of this server; empty for an anonymous login.
        var login: String { self == .vsftpd ? "" : "ada:secret@" }
    }

    private let certificates: TestCertificates
    private let content = Data((0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) })

    init() throws { certificates = try TestCertificates.shared.get() }

    /// Runs a test with a server that has a file, a session that trusts the server, and the beginning of the server's URLs.
    private func withServer(
        _ product: Product, isSecure: Bool, _ change: (inout SmallServer.FTPOptions) -> Void = { _ in },
        test: (SmallServer, URLSession, String) async throws -> Void
    ) async throws {
        var options = SmallServer.FTPOptions(identity: isSecure ? certificates.valid : nil)
        change(&options)
        let server = try product.start(options)
        defer { server.stop() }
        try server.put(content, at: "sub/big.bin")
        let root = certificates.root
        try await withSession {
            $0.tlsTrustRoots = [root]
            $0.requiresSecureFTP = isSecure
        } test: { (session) async throws in
            try await test(server, session, "ftp://\(product.login)localhost:\(server.port)")
        }
    }

    @Test(arguments: Product.allCases, [false, true])
    func `a file is loaded, listed, stored and reported missing`(_ product: Product, isSecure: Bool) async throws {
        try await withServer(product, isSecure: isSecure) { server, session, base in
            let (data, response) = try await session.data(from: try #require(URL(string: base + "/sub/big.bin")))
            #expect(data == content)
            #expect(response.expectedContentLength == Int64(content.count))
            #expect(response.contentModificationDate == Date(timeIntervalSince1970: 1_580_702_706))
            #expect(response.suggestedFilename == "big.bin")
            let (list, listing) = try await session.data(from: try #require(URL(string: base + "/sub/")))
            #expect(String(decoding: list, as: UTF8.self).contains("big.bin\r\n"))
            #expect(listing.mimeType == "text/ftp-dir-listing")
            let (names, _) = try await session.data(from: try #require(URL(string: base + "/sub;type=d")))
            #expect(String(decoding: names, as: UTF8.self) == "big.bin\r\n")
            let error = await #expect(throws: URLError.self) {
                _ = try await session.data(from: try #require(URL(string: base + "/sub/none.bin")))
            }
            #expect(error?.code == .fileDoesNotExist)
            let target = try #require(URL(string: base + "/sub/new%20file.bin"))
            let (body, _) = try await session.upload(for: URLRequest(url: target), from: content)
            #expect(body.isEmpty)
            #expect(try Data(contentsOf: server.folder.appendingPathComponent("sub/new file.bin")) == content)
        }
    }

    @Test(arguments: [Product.vsftpd, .proftpd])
    func `a server that requires data connections to resume the TLS session fails the load and says why`(
        _ product: Product
    ) async throws {
        try await withServer(product, isSecure: true) {
            $0.demandsReuse = true
        } test: { _, session, base in
            let error = await #expect(throws: URLError.self) {
                _ = try await session.data(from: try #require(URL(string: base + "/sub/big.bin")))
            }
            #expect(error?.code == .secureConnectionFailed)
            #expect(error?.localizedDescription.contains("resume") == true)
        }
    }

    @Test func `ftps begins with TLS`() async throws {
        try await withServer(.pyftpdlib, isSecure: true) {
            $0.isImplicit = true
        } test: { _, session, base in
            let url = try #require(URL(string: base.replacingOccurrences(of: "ftp:", with: "ftps:") + "/sub/big.bin"))
            #expect(try await session.data(from: url).0 == content)
        }
    }
}
