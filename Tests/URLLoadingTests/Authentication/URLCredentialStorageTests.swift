// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingStores
import Synchronization
import Testing
import URLLoading

@Suite struct URLCredentialStorageTests {
    private let storage = URLCredentialStorage()
    private let space = URLProtectionSpace(
        host: "a.example", port: 443, protocol: NSURLProtectionSpaceHTTPS, realm: "r",
        authenticationMethod: NSURLAuthenticationMethodHTTPBasic)

    private func credential(
        _ user: String, _ password: String = "secret", _ persistence: URLCredential.Persistence = .forSession
    ) -> URLCredential {
        URLCredential(user: user, password: password, persistence: persistence)
    }

    private final class Counter: Sendable { let count = Mutex(0) }

    private func count(while action: () -> Void) -> Int {
        let counter = Counter()
        let token = NotificationCenter.default.addObserver(
            forName: .NSURLCredentialStorageChanged, object: storage, queue: nil
        ) { _ in
            counter.count.withLock { $0 += 1 }
        }
        defer { NotificationCenter.default.removeObserver(token) }
        action()
        return counter.count.withLock { $0 }
    }

    @Test func `a new storage is empty and independent`() {
        storage.set(credential("u"), for: space)
        #expect(URLCredentialStorage().allCredentials.isEmpty)
        #expect(URLCredentialStorage().credentials(for: space) == nil)
        #expect(storage.allCredentials == [space: ["u": credential("u")]])
    }

    @Test func `there is one shared storage`() {
        #expect(URLCredentialStorage.shared === URLCredentialStorage.shared)
        #expect(URLCredentialStorage.shared !== storage)
    }

    @Test func `a credential is found by space and user, unchanged`() {
        storage.set(credential("u", "1"), for: space)
        storage.set(credential("v", "2", .permanent), for: space)
        storage.set(credential("u", "3"), for: space)
        #expect(storage.credentials(for: space) == ["u": credential("u", "3"), "v": credential("v", "2", .permanent)])
        #expect(storage.defaultCredential(for: space) == credential("u", "3"))
    }

    @Test func `a credential without persistence is not stored`() {
        storage.set(credential("u", "p", .none), for: space)
        storage.setDefaultCredential(credential("u", "p", .none), for: space)
        #expect(storage.allCredentials.isEmpty)
    }

    @Test func `the default credential is one of the space's credentials`() {
        storage.setDefaultCredential(credential("u"), for: space)
        #expect(storage.defaultCredential(for: space) == credential("u"))
        #expect(storage.credentials(for: space) == ["u": credential("u")])
        storage.remove(credential("u"), for: space)
        #expect(storage.defaultCredential(for: space) == nil)
    }

    @Test func `a synchronizable credential is removed only with the option for it`() {
        let synchronizable = credential("u", "p", .synchronizable)
        storage.set(synchronizable, for: space)
        storage.remove(synchronizable, for: space)
        storage.remove(synchronizable, for: space, options: [:])
        storage.remove(synchronizable, for: space, options: nil)
        storage.remove(synchronizable, for: space, options: [NSURLCredentialStorageRemoveSynchronizableCredentials: false])
        #expect(storage.credentials(for: space) == ["u": synchronizable])
        storage.remove(synchronizable, for: space, options: [NSURLCredentialStorageRemoveSynchronizableCredentials: true])
        #expect(storage.credentials(for: space) == nil)
        storage.set(synchronizable, for: space)
        let number = [NSURLCredentialStorageRemoveSynchronizableCredentials: NSNumber(value: true)]
        storage.remove(synchronizable, for: space, options: number)
        #expect(storage.credentials(for: space) == nil)
    }

    @Test func `spaces without a protocol, spaces of proxies, and spaces with any method are returned unchanged`() {
        let spaces = [
            URLProtectionSpace(host: "h", port: 1, protocol: nil, realm: nil, authenticationMethod: nil),
            URLProtectionSpace(proxyHost: "h", port: 0, type: nil, realm: "r", authenticationMethod: nil),
            URLProtectionSpace(
                proxyHost: "h", port: 1080, type: NSURLProtectionSpaceSOCKSProxy, realm: nil,
                authenticationMethod: NSURLAuthenticationMethodNTLM),
            URLProtectionSpace(
                host: "h", port: 0, protocol: "https", realm: nil, authenticationMethod: NSURLAuthenticationMethodNegotiate),
        ]
        for space in spaces { storage.set(credential("u"), for: space) }
        #expect(Set(storage.allCredentials.keys) == Set(spaces))
        for space in spaces { #expect(storage.credentials(for: space) == ["u": credential("u")]) }
    }

    @Test func `a space with an unknown method equals one with the default method`() {
        let space = URLProtectionSpace(host: "h", port: 1, protocol: "http", realm: nil, authenticationMethod: "Guessing")
        let usual = URLProtectionSpace(host: "h", port: 1, protocol: "http", realm: nil, authenticationMethod: nil)
        storage.set(credential("u"), for: space)
        #expect(storage.credentials(for: usual) == ["u": credential("u")])
        #expect(storage.allCredentials == [usual: ["u": credential("u")]])
    }

    @Test(arguments: [URLCredential.Persistence.forSession, .permanent])
    func `the first credential of a space is its default until another default is set or the first one is removed`(
        persistence: URLCredential.Persistence
    ) {
        let (first, second, third) = (
            credential("a", "1", persistence), credential("b", "2", persistence), credential("c", "3", persistence)
        )
        for credential in [first, second, third] { storage.set(credential, for: space) }
        #expect(storage.defaultCredential(for: space) == first)
        storage.set(credential("a", "4", persistence), for: space)
        #expect(storage.defaultCredential(for: space) == credential("a", "4", persistence))
        storage.setDefaultCredential(second, for: space)
        #expect(storage.defaultCredential(for: space) == second)
        storage.remove(second, for: space)
        #expect(storage.defaultCredential(for: space) == nil)
        storage.set(third, for: space)
        #expect(storage.defaultCredential(for: space) == third)
    }

    @Test func `a change posts a notification, but a call without effect does not`() {
        #expect(count { storage.set(credential("u"), for: space) } == 1)
        #expect(count { storage.set(credential("u"), for: space) } == 0)
        #expect(count { storage.setDefaultCredential(credential("u"), for: space) } == 0)
        #expect(count { storage.remove(credential("v"), for: space) } == 0)
        #expect(count { storage.set(credential("v"), for: space) } == 1)
        #expect(count { storage.setDefaultCredential(credential("v"), for: space) } == 1)
        #expect(count { storage.remove(credential("v"), for: space) } == 1)
        #expect(count { storage.remove(credential("u"), for: space) } == 1)
    }

    @Test func `descriptions contain no secrets`() {
        storage.set(credential("Aladdin", "open sesame"), for: space)
        for text in ["\(storage)", storage.debugDescription, String(reflecting: storage)] {
            #expect(!text.contains("Aladdin") && !text.contains("sesame"), "\(text)")
        }
    }

    @Test func `a dump of a credential contains no secrets`() {
        let secret = credential("Aladdin", "open sesame")
        var text = "\(secret) \(String(reflecting: secret))"
        dump(secret, to: &text)
        dump([space: secret], to: &text)
        #expect(text.contains("Aladdin"))
        #expect(!text.contains("sesame"), "\(text)")
    }

    // MARK: By task

    private func task() -> URLSessionTask { URLSessionDataTask() }

    @Test func `the methods with a task do the same as those without a task`() async throws {
        let task = task()
        storage.set(credential("u"), for: space, task: task)
        #expect(await storage.credentials(for: space, task: task) == ["u": credential("u")])
        #expect(await storage.defaultCredential(for: space, task: task) == credential("u"))
        storage.setDefaultCredential(credential("v"), for: space, task: task)
        #expect(await storage.defaultCredential(for: space, task: task) == credential("v"))
        storage.remove(credential("v"), for: space, options: nil, task: task)
        storage.remove(credential("u"), for: space, task: task)
        #expect(await storage.credentials(for: space, task: task) == nil)
    }

    private final class Vault: URLCredentialStorage, @unchecked Sendable {
        let noted = Mutex<[String]>([])

        override func credentials(for space: URLProtectionSpace) -> [String: URLCredential]? {
            ["own": URLCredential(user: "own", password: "p", persistence: .none)]
        }
        override func defaultCredential(for space: URLProtectionSpace) -> URLCredential? {
            URLCredential(user: "own", password: "p", persistence: .none)
        }
        override func set(_ credential: URLCredential, for space: URLProtectionSpace) {
            noted.withLock { $0.append("set \(credential.user ?? "")") }
        }
        override func remove(_ credential: URLCredential, for space: URLProtectionSpace, options: [String: Any]? = [:]) {
            noted.withLock { $0.append("remove \(credential.user ?? "")") }
        }
        override func setDefaultCredential(_ credential: URLCredential, for space: URLProtectionSpace) {
            noted.withLock { $0.append("default \(credential.user ?? "")") }
        }
    }

    @Test func `in a subclass, the methods with a task call the methods without a task`() async throws {
        let (vault, task) = (Vault(), task())
        #expect(await vault.credentials(for: space, task: task)?.keys.first == "own")
        #expect(await vault.defaultCredential(for: space, task: task)?.user == "own")
        vault.set(credential("a"), for: space, task: task)
        vault.remove(credential("b"), for: space, task: task)
        vault.remove(credential("c"), for: space)
        vault.setDefaultCredential(credential("d"), for: space, task: task)
        #expect(vault.noted.withLock { $0 } == ["set a", "remove b", "remove c", "default d"])
    }

    /// Calls its completion handler with a result, and then again without one.
    private final class Doubling: URLCredentialStorage, @unchecked Sendable {
        override func getCredentials(
            for protectionSpace: URLProtectionSpace, task: URLSessionTask,
            completionHandler: @escaping @Sendable ([String: URLCredential]?) -> Void
        ) {
            completionHandler(credentials(for: protectionSpace))
            completionHandler(nil)
        }
        override func getDefaultCredential(
            for space: URLProtectionSpace, task: URLSessionTask, completionHandler: @escaping @Sendable (URLCredential?) -> Void
        ) {
            completionHandler(defaultCredential(for: space))
            completionHandler(nil)
        }
    }

    @Test func `only the first call of a completion handler counts in a subclass that calls it twice`() async throws {
        let (storage, task) = (Doubling(), task())
        storage.setDefaultCredential(credential("u"), for: space)
        #expect(await storage.credentials(for: space, task: task) == ["u": credential("u")])
        #expect(await storage.defaultCredential(for: space, task: task) == credential("u"))
    }

    // MARK: Permanence

    @Test func `the next process has the permanent credentials only`() async throws {
        let folder = FileManager.default.temporaryDirectory.path + "/credentials-" + UUID().uuidString
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func next() -> URLCredentialStorage {
            let file = SealedCredentialFile(path: folder + "/credentials", usesKeyring: false)
            return URLCredentialStorage(store: CredentialStore(permanent: file, queue: DiskQueue()))
        }
        let first = next()
        first.set(credential("session"), for: space)
        first.set(credential("kept", "1", .permanent), for: space)
        first.setDefaultCredential(credential("synchronized", "2", .synchronizable), for: space)
        #expect(first.makeDurable())
        let second = next()
        #expect(second.defaultCredential(for: space) == credential("synchronized", "2", .synchronizable))
        #expect(second.credentials(for: space)?.keys.sorted() == ["kept", "synchronized"])
        second.remove(credential("kept"), for: space)
        #expect(second.makeDurable())
        #expect(first.credentials(for: space)?.keys.sorted() == ["session", "synchronized"])
        let task = task()
        #expect(await next().credentials(for: space, task: task)?.keys.sorted() == ["synchronized"])
    }
}
