// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// Which commands the parts of a URL become, and what listings look like.
@Suite(.timeLimit(.minutes(1)))
struct FTPNameTests {
    private let bytes = Array("hello".utf8)
    private let hello = Data("hello".utf8)

    @Test func `each folder is a CWD of its own, relative to the login folder`() async throws {
        try await withFTP(["/home/one/two/a.txt": bytes]) { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/one/two/a.txt"))
            #expect(data == hello)
            #expect(server.commands("CWD") == ["CWD one", "CWD two"])
            #expect(server.commands("RETR") == ["RETR a.txt"])
            #expect(response.mimeType == "text/plain")
            let type = try #require(server.commands.firstIndex(of: "TYPE I"))
            #expect(type < (server.commands.firstIndex { $0.hasPrefix("SIZE") } ?? -1))
        }
    }

    @Test func `a path that starts with an encoded slash begins at the root`() async throws {
        try await withFTP(["/etc/motd": bytes]) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/%2Fetc/motd")).0 == hello)
            #expect([["CWD /etc"], ["CWD /", "CWD etc"]].contains(server.commands("CWD")), "\(server.commands)")
            #expect(server.commands("RETR") == ["RETR motd"])
        }
    }

    @Test func `a file in the root is loaded`() async throws {
        try await withFTP(["/motd": bytes]) { (server, session) async throws in
            #expect(try await session.data(from: try server.url("/%2Fmotd")).0 == hello)
            #expect(try await session.data(from: try server.url("/%2f/motd")).0 == hello)
        }
    }

    @Test func `names with spaces and non-ASCII letters are sent unchanged`() async throws {
        let names = [
            "/home/s ü/na  me ü日本.bin", "/home/s ü/ lead", "/home/s ü/100%", "/home/s ü/a;b", "/home/s ü/q?x#y", "/home/s ü/-la",
        ]
        try await withFTP(Dictionary(uniqueKeysWithValues: names.map { ($0, bytes) })) { (server, session) async throws in
            for name in names {
                let last = try #require(name.dropFirst(6).split(separator: "/").last)
                let encoded = try #require(last.addingPercentEncoding(withAllowedCharacters: .alphanumerics))
                let url = try server.url("/s%20%C3%BC/" + encoded)
                #expect(try await session.data(from: url).0 == hello)
                #expect(server.commands("RETR").last == "RETR \(last)")
                #expect(server.commands("CWD").last == "CWD s ü")
            }
        }
    }

    @Test(arguments: ["%0D%0ADELE%20a.bin", "%0A", "%0D", "%00", "%01", "%1F", "%7F", "a%0D%0A"])
    func `a URL with control characters is rejected, and nothing is sent`(evil: String) async throws {
        try await withFTP { (server, session) async throws in
            for (path, user) in [
                ("/\(evil)", ""), ("/x\(evil)y/a.bin", ""), ("/a.bin", "a\(evil)@"), ("/a.bin", "ada:s\(evil)@"),
                ("/\(evil)/", ""),
                ("/%2F\(evil)", ""),
            ] {
                let url = try server.url(path, user: user)
                await expectFailure(.badURL, in: url.absoluteString) { try await session.data(from: url) }
                await expectFailure(.badURL, in: "upload " + url.absoluteString) {
                    try await session.upload(for: URLRequest(url: url), from: Data([1]))
                }
            }
            #expect(server.connectionCount == 0)
        }
    }

    @Test func `control characters in a delegate's or a stored credential are not sent`() async throws {
        let interview = Interview { _, number in
            number == 0
                ? (.useCredential, URLCredential(user: "ada\r\nDELE a.bin", password: "x\r\nDELE b", persistence: .none))
                : (.cancelAuthenticationChallenge, nil)
        }
        try await withFTP(delegate: TaskInterviewer(interview)) { visit, order in
            guard order.word == "PASS" else { return false }
            try visit.say("530 no")
            return true
        } test: { (server, session) async throws in
            await #expect(throws: URLError.self) { try await session.data(from: try server.url("/a.bin")) }
            #expect(server.commands("DELE") == [])
        }
    }

    private static let names = """
        drwxr-xr-x 2 ftp ftp 0 Jan  1 00:00 ..\r
        -rw-r--r-- 1 ftp ftp 5 Jan  1 00:00 ../../etc/passwd\r
        -rw-r--r-- 1 ftp ftp 5 Jan  1 00:00 <script>alert(1)</script>\r
        \u{1B}[2J\u{7}\r

        """

    @Test func `a listing is delivered as the server sent it`() async throws {
        try await withFTP(["/home/sub/a.bin": bytes]) { visit, order in
            guard order.word == "LIST" else { return false }
            try visit.send(Array(Self.names.utf8))
            return true
        } test: { (server, session) async throws in
            for path in ["/sub/", "/", ""] {
                let (data, response) = try await session.data(from: try server.url(path))
                #expect(data == Data(Self.names.utf8), "\(path)")
                #expect(response.mimeType == "text/ftp-dir-listing")
                #expect(response.url == (try server.url(path)))
            }
            #expect(server.commands("RETR") == [])
            #expect(server.commands("CWD") == ["CWD sub"] || server.commands("CWD").first == "CWD sub")
        }
    }

    @Test func `an empty folder has an empty body`() async throws {
        try await withFTP { visit, order in
            guard order.word == "LIST" else { return false }
            try visit.send([])
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/"))
            #expect(data.isEmpty)
            #expect(response.mimeType == "text/ftp-dir-listing")
        }
    }

    @Test func `the type in the path selects names, text or binary`() async throws {
        try await withFTP(["/home/a.bin": [13, 10, 255, 0], "/home/sub/b": bytes]) { (server, session) async throws in
            let (names, response) = try await session.data(from: try server.url("/sub;type=d"))
            #expect(names == Data("/home/sub/b\r\n".utf8))
            #expect(response.mimeType == "text/plain")
            #expect(server.commands("NLST").count == 1)
            #expect(!server.commands.contains("TYPE A;type=a"))
            #expect(try await session.data(from: try server.url("/a.bin;type=a")).0 == Data([13, 10, 255, 0]))
            #expect(server.commands("TYPE").last == "TYPE A")
            #expect(try await session.data(from: try server.url("/a.bin;type=i")).0 == Data([13, 10, 255, 0]))
            #expect(server.commands("TYPE").last == "TYPE I")
            let count = server.connectionCount
            for bad in ["/a.bin;type=x", "/a.bin;type=", "/a.bin;type=ii"] {
                await expectFailure(.badURL, in: bad) { try await session.data(from: try server.url(bad)) }
            }
            #expect(server.connectionCount == count)
        }
    }

    @Test func `a response describes the file by its name and by the server's replies`() async throws {
        try await withFTP(["/home/my file.html": bytes, "/home/none": bytes]) { (server, session) async throws in
            let url = try server.url("/my%20file.html")
            let (_, response) = try await session.data(from: url)
            #expect(!(response is HTTPURLResponse))
            #expect(response.url == url)
            #expect(response.expectedContentLength == 5)
            #expect(response.suggestedFilename == "my file.html")
            #expect(response.mimeType == "text/html")
            // 2020-02-02 02:02:02 UTC
            #expect(response.contentModificationDate == Date(timeIntervalSince1970: 1_580_608_922))
            let (_, other) = try await session.data(from: try server.url("/none"))
            #expect(other.mimeType == nil)
        }
    }

    @Test(arguments: [
        ("/%2E%2E%2Fevil", "_evil"), ("/..%2F..%2Fevil", "_.._evil"), ("/%2Fetc%2Fpasswd", "_etc_passwd"), ("/.", "127.0.0.1"),
    ])
    func `a suggested file name contains no path`(path: String, name: String) async throws {
        try await withFTP(["/home/a.bin": bytes]) { visit, order in
            switch order.word {
            case "CWD": try visit.say("250 changed")
            case "SIZE": try visit.say("213 5")
            case "RETR", "LIST": try visit.send(Array("hello".utf8))
            default: return false
            }
            return true
        } test: { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url(path))
            #expect(data == Data("hello".utf8))
            #expect(response.suggestedFilename == name)
        }
    }

    @Test func `an empty file is loaded`() async throws {
        try await withFTP(["/home/empty": []]) { (server, session) async throws in
            let (data, response) = try await session.data(from: try server.url("/empty"))
            #expect(data.isEmpty)
            #expect(response.expectedContentLength == 0)
        }
    }

    @Test func `every way to load a file delivers the same bytes`() async throws {
        let content = ScriptedFile.pattern(300_000)
        let recorder = EventRecorder()
        try await withFTP(["/home/a.bin": content], delegate: recorder) { (server, session) async throws in
            let url = try server.url("/a.bin")
            #expect(try await session.data(from: url).0 == Data(content))
            let done = Delivered<Data?>()
            session.dataTask(with: url) { data, _, _ in done(data) }.resume()
            #expect(try await done.value == Data(content))
            let task = session.dataTask(with: url)
            task.resume()
            let record = try await recorder.completion(of: task)
            #expect(record.body == Data(content))
            #expect(record.response?.expectedContentLength == 300_000)
            try recorder.expectOrder(of: task, EventRecorder.dataGrammar)
            #expect(task.countOfBytesReceived == 300_000)
            #expect(task.countOfBytesExpectedToReceive == 300_000)
            let (file, _) = try await session.download(from: url)
            #expect(try Data(contentsOf: file) == Data(content))
            try FileManager.default.removeItem(at: file)
            let (bytes, _) = try await session.bytes(from: url)
            var all: [UInt8] = []
            for try await byte in bytes { all.append(byte) }
            #expect(all == content)
        }
    }
}
