//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

import Foundation
import LoadingTestKit
import Testing
import URLLoading

/// How long a credential that answered a challenge is kept, and where.
@Suite(.timeLimit(.minutes(1)))
struct CredentialPersistenceTests {
    /// A storage of the app's own, that writes down how it is used.
    private final class Ledger: URLCredentialStorage, @unchecked Sendable {
        // `entries` locks.
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

    @Test func `a permanent credential is stored when it was accepted, any other is not`() async throws {
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
                // Another session of the same storage asks nobody.
                try await withSession {
                    $0.urlCredentialStorage = storage
                } test: { (session) async throws in
                    #expect(try await session.text(server.url()) == "in")
                }
            }
        }
    }

    @Test func `a permanent credential that is refused is not stored`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview { _, number in number < 2 ? (.useCredential, .wrong(.permanent)) : (.useCredential, nil) }
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "who are you?")
            #expect(storage.allCredentials.isEmpty)
        }
    }

    @Test func `of a wrong and a right one the right one is stored`() async throws {
        let storage = URLCredentialStorage()
        let interview = Interview { _, number in (.useCredential, number == 0 ? .wrong(.permanent) : .ada(.permanent)) }
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url()) == "in")
            #expect(storage.credentials(for: .of(server))?["ada"]?.password == "lovelace")
        }
    }

    @Test func `a digest credential is stored for its method`() async throws {
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

    @Test func `without a storage a permanent credential lasts for the session`() async throws {
        let interview = Interview(.ada(.permanent))
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = nil }, reply: BasicScript()()
        ) { (server, session) async throws in
            for _ in 0..<2 { #expect(try await session.text(server.url()) == "in") }
            #expect(server.requests.count == 3 && interview.questions.count == 1)
        }
    }

    @Test func `a storage of the app's own is asked by task: default, then all`() async throws {
        for (ledger, gets) in [
            (Ledger(defaultOne: .ada()), ["default tower /x"]),
            (Ledger(known: ["ada": .ada()]), ["default tower /x", "get tower /x"]),
        ] {
            try await withScenario(configure: { $0.urlCredentialStorage = ledger }, reply: BasicScript()()) {
                (server, session) async throws in
                #expect(session.configuration.urlCredentialStorage === ledger)
                #expect(try await session.text(server.url("/x")) == "in")
                #expect(ledger.entries.read { $0 } == gets)
            }
        }
    }

    @Test func `a storage of the app's own without a credential leaves it to the delegate, and is told what was accepted`()
        async throws
    {
        let ledger = Ledger()
        let interview = Interview(.ada(.permanent))
        try await withScenario(
            delegate: TaskInterviewer(interview), configure: { $0.urlCredentialStorage = ledger }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/x")) == "in")
            try await ledger.entries.value { $0.count >= 3 ? () : nil }
            #expect(ledger.entries.read { $0 } == ["default tower /x", "get tower /x", "set ada tower /x"])
        }
    }

    @Test func `a storage of the app's own is not told of a credential for the session`() async throws {
        let ledger = Ledger()
        try await withScenario(
            delegate: TaskInterviewer(Interview(.ada())), configure: { $0.urlCredentialStorage = ledger }, reply: BasicScript()()
        ) { (server, session) async throws in
            #expect(try await session.text(server.url("/x")) == "in")
            #expect(try await session.text(server.url("/x")) == "in")
            #expect(ledger.entries.read { $0 } == ["default tower /x", "get tower /x"])
        }
    }
}
