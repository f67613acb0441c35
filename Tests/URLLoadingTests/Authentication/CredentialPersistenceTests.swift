// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How long a credential that answered a challenge is kept, and where it is stored.
@Suite(.timeLimit(.minutes(1)))
struct CredentialPersistenceTests {
    /// An app's own storage that records its calls.
    private final class RecordingStorage: URLCredentialStorage, @unchecked Sendable {
        // Synchronized by `entries`.
        let entries = Watched<[String]>([])
        let known = Watched<[String: URLCredential]>([:])
        let defaultOne: URLCredential?

        init(known: [String: URLCredential] = [:], defaultOne: URLCredential? = nil) {
            self.defaultOne = defaultOne
            super.init()
            self.known.change { $0 = known }
        }

        private func note(_ what: String, _ space: URLProtectionSpace, _ task: URLSessionTask) {
            entries.change { $0.append("\(what) \(space.realm ?? "nil") \(task.originalRequest?.url?.path ?? "")") }
        }

        override func getCredentials(
            for protectionSpace: URLProtectionSpace, task: URLSessionTask,
            completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
        ) {
            note("get", protectionSpace, task)
            let known = known.read { $0 }
            Thread.detachNewThread { completionHandler(known) }
        }

        override func getDefaultCredential(
            for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
        ) {
            note("default", space, task)
            completionHandler(defaultOne)
        }

        override func set(_ credential: URLCredential, for protectionSpace: URLProtectionSpace, task: URLSessionTask) {
            note("set \(credential.user ?? "nil")", protectionSpace, task)
        }
    }

    @Test func `only a permanent or synchronizable credential is stored when the server accepts it`() async throws {
        for (persistence, count) in [
            (URLCredential.Persistence.none, 0), (.forSession, 0), (.permanent, 1), (.synchronizable, 1),
        ] {
            let storage = URLCredentialStorage()
            let interview = Interview(.ada(persistence))
            try await withScenario(
                delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
            ) { (server, session) async throws in
                #expect(try await session.text(server.url()) == "in")
                #expect(storage.allCredentials.count == count, "\(persistence)")
                guard count == 1 else { return }
                let kept = try #require(storage.credentials(for: .of(server))?["ada"])
                #expect(kept.password == "lovelace" && kept.persistence == persistence)
                // Another session with the same storage does not ask the app.
                try await withSession {
                    $0.urlCredentialStorage = storage
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "in")
                }
            }
        }
    }

    @Test func `a refused permanent credential is not stored`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview { _, number in number < 2 ? (.useCredential, .wrong(.permanent)) : (.useCredential, nil) }
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(storage.allCredentials.isEmpty)
        }
    }

    @Test func `after a wrong credential, only the accepted credential is stored`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview { _, number in (.useCredential, number == 0 ? .wrong(.permanent) : .ada(.permanent)) }
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(storage.credentials(for: .of(server))?["ada"]?.password == "lovelace")
        }
    }

    @Test func `a Digest credential is stored for the Digest method`() async throws {
        let storage = URLCredentialStorage()
        let gate = DigestGate()
        let interview = Interview(user: "Mufasa", password: "Circle of Life", .permanent)
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: gate.script()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            let space = URLProtectionSpace.of(server, realm: "digest realm", method: NSURLAuthenticationMethodHTTPDigest)
            #expect(Array(storage.allCredentials.keys) == [space])
        }
    }

    @Test func `user info of a URL is not stored`() async throws {
        let storage = URLCredentialStorage()
        try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
            (server, session) async throws in
            #expect(try await session.text(server.url(user: "ada:lovelace")) == "in")
            #expect(storage.allCredentials.isEmpty)
        }
    }

    @Test func `without a storage, a permanent credential lasts as long as the session`() async throws {
        let interview = Interview(.ada(.permanent))
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = nil }, reply: BasicScript()()
        ) { (server, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(server.url()) == "in") }
            #expect(server.requests.count == 3 && interview.questions.count == 1)
        }
    }

    @Test func `a storage subclass is asked with the task, for the default credential and then for all`() async throws {
        for (storage, gets) in [
            (RecordingStorage(defaultOne: .ada()), ["default tower /x"]),
            (RecordingStorage(known: ["ada": .ada()]), ["default tower /x", "get tower /x"]),
        ] {
            try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
                (server, session) async throws in
                #expect(session.configuration.urlCredentialStorage === storage)
                #expect(try await session.text(server.url("/x")) == "in")
                #expect(storage.entries.read { $0 } == gets)
            }
        }
    }

    @Test func `the delegate is asked if an app's own storage has no credential, and the accepted one is stored`()
        async throws
    {
        let storage = RecordingStorage()
        let interview = Interview(.ada(.permanent))
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/x")) == "in")
            try await storage.entries.value { $0.count >= 3 ? () : nil }
            #expect(storage.entries.read { $0 } == ["default tower /x", "get tower /x", "set ada tower /x"])
        }
    }

    @Test func `a credential with session persistence is not stored in a storage subclass`() async throws {
        let storage = RecordingStorage()
        try await withScenario(
            delegate: TaskInterviewer(Interview(.ada())), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/x")) == "in")
            #expect(try await session.text(server.url("/x")) == "in")
            #expect(storage.entries.read { $0 } == ["default tower /x", "get tower /x"])
        }
    }
}
