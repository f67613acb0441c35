// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import LoadingModel
import LoadingTestKit
import Testing

@testable import LoadingStores

@Suite struct SealedCredentialFileTests {
    private let files = ["credentials", "credentials.key", "credentials.lock"]

    private func oneCredential(in folder: Folder, usesKeyring: Bool = false) async throws -> [UInt8] {
        let store = CredentialStore(apart: folder.path("credentials"), usesKeyring: usesKeyring)
        store.set(password("Aladdin", "open sesame"), for: space())
        await store.flush()
        return try folder.bytes("credentials")
    }

    private func contains(_ text: String, in bytes: [UInt8]) -> Bool {
        String(decoding: bytes, as: UTF8.self).contains(text)
    }

    @Test func `a credential read from the file has all its properties`() async throws {
        let folder = try Folder()
        let first = CredentialStore(apart: folder.path("credentials"))
        let spaces = [
            space(), space(realm: nil), space(realm: ""), space(isProxy: true),
            space("ü.example", port: 65_535, realm: "\"\u{0}ü"),
            space(port: 0, kind: "SOCKS", isProxy: true, realm: nil, method: .negotiate),
        ]
        for space in spaces {
            first.set(password("üser", "pass:wörd\n"), for: space)
            first.setDefault(password("", "", .synchronizable), for: space)
        }
        #expect(first.flushAndWait())
        let second = CredentialStore(apart: folder.path("credentials"))
        await second.prepare()
        #expect(second.all() == first.all())
        #expect(second.all().count == spaces.count)
        for space in spaces {
            #expect(second.defaultCredential(for: space) == password("", "", .synchronizable))
        }
        #expect(folder.warnings.isEmpty)
    }

    @Test func `the order of credentials in the file depends only on its content`() {
        // No realm and an empty realm are different spaces.
        let kept = [nil, "", "r"].flatMap { realm in
            ["u", "v"].map { StoredCredential(space: space(realm: realm), user: $0, password: "p") }
        }
        let first = CredentialBook(kept).kept
        // The iteration order of a dictionary differs each time.
        for _ in 0..<64 { #expect(CredentialBook(first).kept == first) }
    }

    @Test func `no file is written before a permanent credential is stored`() async throws {
        let folder = try Folder()
        let store = CredentialStore(apart: folder.path("credentials"))
        await store.prepare()
        store.set(password("u", "p", .forSession), for: space())
        store.remove(password("u"), for: space())
        await store.flush()
        #expect(try folder.names.isEmpty)
    }

    @Test func `files are private, and their content is unreadable`() async throws {
        let folder = try Folder()
        let bytes = try await oneCredential(in: folder)
        #expect(try folder.names == files)
        for name in try folder.names { #expect(try folder.mode(of: name) == 0o600, "\(name)") }
        for text in ["Aladdin", "open sesame", "a.example", "HTTPBasic"] { #expect(!contains(text, in: bytes)) }
        // Writing the same content again produces different bytes, too.
        let store = CredentialStore(apart: folder.path("credentials"))
        store.set(password("x"), for: space())
        await store.flush()
        store.remove(password("x"), for: space())
        await store.flush()
        #expect(try folder.bytes("credentials").suffix(60) != bytes.suffix(60))
    }

    @Test func `a file truncated at any byte has no credentials and is set aside`() async throws {
        let folder = try Folder()
        let whole = try await oneCredential(in: folder)
        for length in 0..<whole.count {
            let cut = Array(whole[..<length])
            try folder.write(cut, to: "credentials")
            let store = CredentialStore(apart: folder.path("credentials"))
            #expect(await store.users().isEmpty, "cut at \(length)")
            #expect(try folder.bytes("credentials.damaged") == cut)
        }
        #expect(folder.warnings.count == whole.count)
    }

    @Test func `a file with a correct checksum and any flipped bit in the ciphertext has no credentials`() async throws {
        let folder = try Folder()
        let whole = try await oneCredential(in: folder)
        guard case .whole(_, let start) = SealedCredentialFile.envelope.open(whole) else {
            Issue.record("not sealed")
            return
        }
        for index in start..<whole.count {
            var body = Array(whole[start...])
            body[index - start] ^= 1 << UInt8(index % 8)
            // An attacker can correct the checksum.
            let envelope = SealedCredentialFile.envelope
            try folder.write(envelope.seal(body, envelope.header(of: body)), to: "credentials")
            #expect(await CredentialStore(apart: folder.path("credentials")).users().isEmpty, "byte \(index)")
        }
        #expect(folder.warnings.count == whole.count - start)
    }

    @Test func `credentials in memory survive damage to the file`() async throws {
        let folder = try Folder()
        let store = CredentialStore(apart: folder.path("credentials"))
        store.set(password("a"), for: space())
        await store.flush()
        try folder.write([7, 7, 7], to: "credentials")
        #expect(await store.users() == ["a"])
        #expect(await CredentialStore(apart: folder.path("credentials")).users() == ["a"])
        // The same holds if the store finds the damage while it writes.
        try folder.write([8, 8, 8], to: "credentials")
        store.set(password("b"), for: space())
        await store.flush()
        #expect(await CredentialStore(apart: folder.path("credentials")).users() == ["a", "b"])
        #expect(folder.warnings.count == 2)
    }

    @Test(arguments: [false, true])
    func `without its key the file cannot be opened and is set aside`(isDamaged: Bool) async throws {
        let folder = try Folder()
        let whole = try await oneCredential(in: folder)
        if isDamaged {
            var key = try folder.bytes("credentials.key")
            key[key.count - 1] ^= 1
            try folder.write(key, to: "credentials.key")
        } else {
            try FileManager.default.removeItem(atPath: folder.path("credentials.key"))
        }
        let store = CredentialStore(apart: folder.path("credentials"))
        #expect(await store.users().isEmpty)
        #expect(try folder.bytes("credentials.damaged") == whole)
        store.set(password("new"), for: space())
        await store.flush()
        #expect(await CredentialStore(apart: folder.path("credentials")).users() == ["new"])
        #expect(folder.warnings.count == 1)
        #expect(folder.warnings.first?.contains("its key is missing") == true)
    }

    @Test func `a key from another machine opens nothing`() async throws {
        let (here, there) = (try Folder(), try Folder())
        _ = try await oneCredential(in: here)
        _ = try await oneCredential(in: there)
        try here.write(try there.bytes("credentials.key"), to: "credentials.key")
        #expect(await CredentialStore(apart: here.path("credentials")).users().isEmpty)
        #expect(here.warnings.first?.contains("its key does not decrypt it") == true)
    }

    @Test func `a file or key of a newer version is left alone`() async throws {
        for (name, kind) in [("credentials", "credentials"), ("credentials.key", "credential-key")] {
            let folder = try Folder()
            _ = try await oneCredential(in: folder)
            let newer = StoreEnvelope(kind: kind, version: 2)
            let bytes = newer.seal([1, 2, 3], newer.header(of: [1, 2, 3]))
            try folder.write(bytes, to: name)
            let store = CredentialStore(apart: folder.path("credentials"))
            store.set(password("a"), for: space())
            await store.flush()
            #expect(await store.users() == ["a"])
            #expect(try folder.bytes(name) == bytes)
            #expect(folder.warnings.count == 1)
        }
    }

    @Test(arguments: ["credentials", "credentials.key"])
    func `a symbolic link instead of a file is not followed`(name: String) async throws {
        let folder = try Folder()
        _ = try await oneCredential(in: folder)
        try FileManager.default.moveItem(atPath: folder.path(name), toPath: folder.path("target"))
        let target = try folder.bytes("target")
        try FileManager.default.createSymbolicLink(atPath: folder.path(name), withDestinationPath: folder.path("target"))
        let store = CredentialStore(apart: folder.path("credentials"))
        #expect(await store.users().isEmpty)
        store.set(password("a"), for: space())
        await store.flush()
        #expect(try folder.bytes("target") == target)
        #expect(await CredentialStore(apart: folder.path("credentials")).users() == ["a"])
    }

    @Test func `a file or folder writable by others is not used`() async throws {
        let folder = try Folder()
        _ = try await oneCredential(in: folder)
        try folder.setMode(0o666, of: "credentials")
        #expect(await CredentialStore(apart: folder.path("credentials")).users().isEmpty)
        try folder.setMode(0o777, of: "")
        let store = CredentialStore(apart: folder.path("credentials"))
        store.set(password("a"), for: space())
        await store.flush()
        #expect(try !folder.names.contains("credentials"))
        #expect(await store.users() == ["a"])
        #expect(folder.warnings.count == 2)
    }

    // MARK: The kernel keyring

    @Test func `the keyring is available if the kernel has one for this user`() throws {
        // keyctl(KEYCTL_GET_PERSISTENT, -1, KEY_SPEC_PROCESS_KEYRING), called directly.
        let directory = try TemporaryDirectory()
        let machine = "{'x86_64': 250, 'aarch64': 219}[__import__('platform').machine()]"
        let script = "import ctypes; print(ctypes.CDLL(None).syscall(\(machine), 22, -1, -2) >= 0)"
        let text = try ServerProcess.run(
            ServerProcess.Command(
                [ServerProcess.program("python3", package: "python3"), "-c", script], output: directory.file("output")))
        #expect(text == (KernelKeyring.isAvailable ? "True\n" : "False\n"))
    }

    @Test(.enabled(if: KernelKeyring.isAvailable))
    func `the keyring restores a lost or damaged key file`() async throws {
        let folder = try Folder()
        defer { KernelKeyring(path: folder.path("credentials")).remove() }
        _ = try await oneCredential(in: folder, usesKeyring: true)
        let key = try folder.bytes("credentials.key").suffix(32)
        #expect(KernelKeyring(path: folder.path("credentials")).read(size: 32) == Array(key))
        for isDamaged in [false, true] {
            if isDamaged {
                try folder.write([1, 2, 3], to: "credentials.key")
            } else {
                try FileManager.default.removeItem(atPath: folder.path("credentials.key"))
            }
            let store = CredentialStore(apart: folder.path("credentials"), usesKeyring: true)
            #expect(await store.users().contains("Aladdin"))
            store.set(password(isDamaged ? "y" : "x"), for: space())
            await store.flush()
            #expect(try folder.bytes("credentials.key").suffix(32) == key)
        }
        #expect(folder.warnings.isEmpty)
    }

    @Test(.enabled(if: KernelKeyring.isAvailable))
    func `the key file restores a lost keyring, as after a reboot`() async throws {
        let folder = try Folder()
        let keyring = KernelKeyring(path: folder.path("credentials"))
        defer { keyring.remove() }
        _ = try await oneCredential(in: folder, usesKeyring: true)
        keyring.remove()
        #expect(keyring.read(size: 32) == nil)
        let store = CredentialStore(apart: folder.path("credentials"), usesKeyring: true)
        #expect(await store.users() == ["Aladdin"])
        store.set(password("x"), for: space())
        await store.flush()
        #expect(keyring.read(size: 32) == Array(try folder.bytes("credentials.key").suffix(32)))
    }

    @Test(.enabled(if: KernelKeyring.isAvailable))
    func `files from a backup can be read if their key differs from the key in the keyring`() async throws {
        let folder = try Folder()
        let keyring = KernelKeyring(path: folder.path("credentials"))
        defer { keyring.remove() }
        _ = try await oneCredential(in: folder, usesKeyring: true)
        #expect(keyring.write([UInt8](repeating: 9, count: 32)))
        let store = CredentialStore(apart: folder.path("credentials"), usesKeyring: true)
        #expect(await store.users() == ["Aladdin"])
        store.set(password("x"), for: space())
        await store.flush()
        #expect(keyring.read(size: 32) == Array(try folder.bytes("credentials.key").suffix(32)))
    }
}
