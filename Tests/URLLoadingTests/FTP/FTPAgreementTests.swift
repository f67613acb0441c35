// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// What client and server agree on before a transfer: the login, TLS, the data connection; and loads that only describe a file.
@Suite(.timeLimit(.minutes(1)))
struct FTPAgreementTests {
    private let hello = Data("hello".utf8)

    // MARK: HEAD

    @Test func `HEAD describes a file without transferring it`() async throws {
        try await withFTP(["/home/sub/a.html": Array("hello".utf8)]) { (server, session) async throws in
            var request = URLRequest(url: try server.url("/sub/a.html"))
            request.httpMethod = "HEAD"
            let (data, response) = try await session.data(for: request)
            #expect(data.isEmpty)
            #expect(response.expectedContentLength == 5)
            #expect(response.contentModificationDate != nil)
            #expect(response.mimeType == "text/html")
            request.url = try server.url("/sub/")
            let (listing, folder) = try await session.data(for: request)
            #expect(listing.isEmpty)
            #expect(folder.mimeType == "text/ftp-dir-listing")
            let file = try await session.download(for: request).0
            #expect(try Data(contentsOf: file).isEmpty)
            for path in ["/sub/none", "/none/"] {
                request.url = try server.url(path)
                await expectFailure(.fileDoesNotExist, in: path) { try await session.data(for: request) }
            }
            for word in ["RETR", "LIST", "NLST", "EPSV", "PASV"] { #expect(server.commands(word) == []) }
            #expect(server.dataCount == 0)
        }
    }

    @Test func `HEAD fails if nothing shows that the server has the file`() async throws {
        try await withFTP { visit, order in
            guard ["SIZE", "MDTM"].contains(order.word) else { return false }
            try visit.say("502 not here")
            return true
        } test: { (server, session) async throws in
            var request = URLRequest(url: try server.url("/a.bin"))
            request.httpMethod = "HEAD"
            await expectFailure(.badServerResponse) { try await session.data(for: request) }
        }
    }

    // MARK: The data connection

    @Test(arguments: ["229 nothing", "350 go on", "200 fine", "500 what?", "refused"])
    func `PASV replaces an EPSV that does not work, once`(reply: String) async throws {
        let refusing = try RefusingPort()
        try await withFTP { visit, order in
            guard order.word == "EPSV" else { return false }
            try visit.say(reply == "refused" ? "229 here (|||\(refusing.number)|)" : reply)
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("EPSV").count == 1)
            #expect(server.commands("PASV").count == 1)
            #expect(server.commands("MDTM").count == 1)
        }
    }

    @Test func `a load fails if the ports of EPSV and PASV refuse`() async throws {
        let refusing = try RefusingPort()
        try await withFTP { visit, order in
            let port = refusing.number
            switch order.word {
            case "EPSV": try visit.say("229 here (|||\(port)|)")
            case "PASV": try visit.say("227 (127,0,0,1,\(port / 256),\(port % 256))")
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            let error = await expectFailure(.cannotConnectToHost) { try await session.data(from: try server.url("/a.bin")) }
            #expect(error?.localizedDescription.contains("data connection") == true, "\(String(describing: error))")
            #expect(server.commands("PASV").count == 1)
        }
    }

    // MARK: The login

    @Test(arguments: ["200 welcome", "230 welcome"])
    func `a user may need no password`(reply: String) async throws {
        try await withFTP { visit, order in
            guard order.word == "USER" else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/a.bin")).0 == hello)
            #expect(server.commands("PASS") == [])
        }
    }

    @Test(arguments: [
        ("USER", "530 Non-anonymous sessions must use encryption."), ("USER", "550 SSL/TLS required on the control channel"),
        ("PASS", "530 Please log in with TLS"), ("RETR", "522 the data must be encrypted"),
    ])
    func `a server that demands TLS is told from a refused login`(word: String, reply: String) async throws {
        let recorder = EventRecorder()
        try await withFTP(delegate: recorder) { visit, order in
            guard order.word == word else { return false }
            try visit.say(reply)
            return true
        } test: { (server, session) async throws in
            let task = session.dataTask(with: try server.url("/a.bin"))
            task.resume()
            let record = try await recorder.completion(of: task)
            let error = try #require(record.error as? URLError)
            #expect(error.code == .secureConnectionFailed)
            #expect(error.localizedDescription.contains("requiresSecureFTP"), "\(error)")
            // The app is not asked for another password.
            #expect(server.commands(word).count == 1)
        }
    }

    // MARK: Names

    @Test(arguments: [("/a.txt;type=a", "a.txt"), ("/b;TYPE=i", "b"), ("/sub;type=d", "sub.txt"), ("/a%3Fb.txt", "a?b.txt")])
    func `the type in a URL is no part of the suggested name`(path: String, name: String) async throws {
        let files = ["/home/a.txt", "/home/b", "/home/sub/c", "/home/a?b.txt"]
        try await withFTP(Dictionary(uniqueKeysWithValues: files.map { ($0, [1, 2]) })) { (server, session) async throws in
            let (_, response) = try await session.data(from: try server.url(path))
            #expect(response.suggestedFilename == name)
            #expect(response.mimeType == (name.hasSuffix("txt") ? "text/plain" : nil))
        }
    }
}
