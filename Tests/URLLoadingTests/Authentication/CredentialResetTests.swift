// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingStores
import LoadingTestKit
import Testing
import URLLoading

/// `reset` removes credentials of every persistence from the session's credential storage, even if an app subclasses the storage.
@Suite(.timeLimit(.minutes(1)))
struct CredentialResetTests {
    /// Stores credentials without calling `super`.
    private final class OverridingStorage: URLCredentialStorage, @unchecked Sendable {
        // Synchronized by `kept`.
        private let kept = Watched<[URLProtectionSpace: [String: URLCredential]]>([:])

        override var allCredentials: [URLProtectionSpace: [String: URLCredential]] { kept.read { $0 } }

        override func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? { kept.read { $0[space] } }

        override func set(_ credential: URLCredential, for space: URLProtectionSpace) {
            kept.change { $0[space, default: [:]][credential.user ?? ""] = credential }
        }

        override func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
            let isMeant = options?[NSURLCredentialStorageRemoveSynchronizableCredentials] as? Bool ?? false
            guard credential.persistence != .synchronizable || isMeant else { return }
            kept.change { kept in
                kept[space]?[credential.user ?? ""] = nil
                if kept[space]?.isEmpty == true { kept[space] = nil }
            }
        }
    }

    /// Inherits all methods.
    private final class InheritingStorage: URLCredentialStorage, @unchecked Sendable {}

    private static let persistences = [URLCredential.Persistence.forSession, .permanent, .synchronizable]

    private func space(_ host: String) -> URLProtectionSpace {
        URLProtectionSpace(
            host: host, port: 443, protocol: NSURLProtectionSpaceHTTPS, realm: "r",
            authenticationMethod: NSURLAuthenticationMethodHTTPBasic)
    }

    /// Adds a user for each persistence to two spaces.
    private func fill(_ storage: URLCredentialStorage) {
        for host in ["a.example", "b.example"] {
            for persistence in Self.persistences {
                let credential = URLCredential(user: "\(persistence.rawValue)", password: "secret", persistence: persistence)
                storage.set(credential, for: space(host))
            }
        }
    }

    private func reset(_ storage: URLCredentialStorage) async throws {
        try await withSession {
            $0.urlCredentialStorage = storage
        } test: { (session) async throws in
            await session.reset()
        }
    }

    /// A storage backed by a file, as another process would open it.
    private func storage(in folder: TemporaryDirectory) -> URLCredentialStorage {
        let file = SealedCredentialFile(path: folder.file("credentials").path, usesKeyring: false)
        return URLCredentialStorage(store: CredentialStore(permanent: file, queue: DiskQueue()))
    }

    @Test func `reset empties the storage and its file`() async throws {
        let folder = try TemporaryDirectory()
        let storage = storage(in: folder)
        fill(storage)
        #expect(storage.allCredentials.mapValues(\.count) == [space("a.example"): 3, space("b.example"): 3])
        #expect(storage.makeDurable())
        #expect(self.storage(in: folder).allCredentials.mapValues(\.count) == [space("a.example"): 2, space("b.example"): 2])
        try await reset(storage)
        #expect(storage.allCredentials.isEmpty)
        #expect(storage.defaultCredential(for: space("a.example")) == nil)
        #expect(self.storage(in: folder).allCredentials.isEmpty)
    }

    @Test func `reset empties an app's own storage`() async throws {
        for storage in [OverridingStorage(), InheritingStorage()] {
            fill(storage)
            #expect(storage.allCredentials.mapValues(\.count) == [space("a.example"): 3, space("b.example"): 3])
            try await reset(storage)
            #expect(storage.allCredentials.isEmpty, "\(type(of: storage))")
        }
    }

    @Test func `flush writes what a subclass stores through super`() async throws {
        let folder = try TemporaryDirectory()
        let file = SealedCredentialFile(path: folder.file("credentials").path, usesKeyring: false)
        let storage = InheritingStorage(store: CredentialStore(permanent: file, queue: DiskQueue()))
        try await withSession {
            $0.urlCredentialStorage = storage
        } test: { (session) async throws in
            fill(storage)
            await session.flush()
            #expect(self.storage(in: folder).allCredentials.mapValues(\.count) == [space("a.example"): 2, space("b.example"): 2])
        }
    }

    @Test func `credentials from the storage are not sent after a reset`() async throws {
        for storage in [URLCredentialStorage(), OverridingStorage(), InheritingStorage()] {
            try await withScenario(configure: { $0.urlCredentialStorage = storage }, reply: BasicScript()()) {
                (server, session) async throws in
                // The session stores an accepted credential asynchronously; the reset must remove the credential nevertheless.
                for _ in 0..<20 {
                    storage.set(.ada(.permanent), for: .of(server))
                    #expect(try await session.text(server.url()) == "in")
                    await session.reset()
                    #expect(try await session.text(server.url()) == "who are you?", "\(type(of: storage))")
                    #expect(server.requests.last?.authorization == nil)
                }
            }
        }
    }
}
