// SPDX-License-Identifier: Apache-2.0

import Foundation
import LoadingTestKit
import SystemLibraries
import Testing

private let schema = "org.urlloading.Test"

/// The secret of any item that has at least these attributes.
private func secret(of attributes: [String: String], _ schema: String) throws(SecretService.Failure) -> String? {
    try SecretService.list(attributes, schema: schema).first?.secret
}

/// The Secret Service of GNOME Keyring on a separate session bus, and its absence.
@Suite(.timeLimit(.minutes(1))) struct SecretServiceTests {
    @Test func `a keyring keeps secrets`() async throws {
        try await KeyringSession.run("UnlockedKeyringTests")
    }

    @Test func `without a bus all operations fail at once`() async throws {
        let home = try ServerDirectory()
        var environment = KeyringSession.environment(home)
        environment["DBUS_SESSION_BUS_ADDRESS"] = "unix:path=/nonexistent/bus"
        try await SeparateProcess.run("WithoutServiceTests", environment: environment)
    }

    @Test func `with a bus but without the service all operations fail at once`() async throws {
        let home = try ServerDirectory()
        let dbus = try ServerProcess.program("dbus-run-session", package: "dbus-daemon")
        // The bus cannot start any services.
        let configuration = """
            <busconfig>
            <type>session</type>
            <listen>unix:tmpdir=/tmp</listen>
            <auth>EXTERNAL</auth>
            <policy context="default"><allow send_destination="*"/><allow eavesdrop="true"/><allow own="*"/></policy>
            </busconfig>
            """
        let file = try home.write(configuration.utf8, to: "bus.conf")
        try await SeparateProcess.run(
            "WithoutServiceTests", environment: KeyringSession.environment(home),
            wrapper: [dbus, "--config-file=\(file.path)", "--"]
        )
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("WithoutServiceTests")), .timeLimit(.minutes(1))) struct WithoutServiceTests {
    @Test func `the Secret Service is unavailable`() {
        #expect(!SecretService.isAvailable)
        func isAbsence(_ body: () throws(SecretService.Failure) -> Void) -> Bool {
            do throws(SecretService.Failure) {
                try body()
                return false
            } catch {
                return error.isAbsence && !error.text.isEmpty && !error.text.contains("hush")
            }
        }
        #expect(
            isAbsence { () throws(SecretService.Failure) in
                try SecretService.store("hush", label: "l", attributes: ["a": "b"], schema: schema)
            })
        #expect(isAbsence { () throws(SecretService.Failure) in _ = try secret(of: ["a": "b"], schema) })
        #expect(isAbsence { () throws(SecretService.Failure) in try SecretService.remove(["a": "b"], schema: schema) })
        #expect(isAbsence { () throws(SecretService.Failure) in _ = try SecretService.list(["a": "b"], schema: schema) })
    }
}

@Suite(.enabled(if: SeparateProcess.isCurrentSuite("UnlockedKeyringTests")), .serialized, .timeLimit(.minutes(1)))
struct UnlockedKeyringTests {
    @Test func `a secret is stored, found, replaced and removed`() throws {
        #expect(SecretService.isAvailable)
        let attributes = ["host": "münchen.example", "user": "ada", "empty": ""]
        #expect(try secret(of: attributes, schema) == nil)
        try SecretService.store("hush", label: "One", attributes: attributes, schema: schema)
        #expect(try secret(of: attributes, schema) == "hush")
        #expect(try secret(of: ["user": "ada"], schema) == "hush")
        #expect(try secret(of: ["user": "bob"], schema) == nil)
        #expect(try secret(of: attributes, "org.urlloading.Other") == nil)
        try SecretService.store("pässwörd 🔑", label: "Two", attributes: attributes, schema: schema)
        #expect(
            try SecretService.list(["user": "ada"], schema: schema)
                == [SecretService.Item(label: "Two", attributes: attributes, secret: "pässwörd 🔑")]
        )
        #expect(try SecretService.remove(attributes, schema: schema))
        #expect(try !SecretService.remove(attributes, schema: schema))
        #expect(try SecretService.list(["user": "ada"], schema: schema).isEmpty)
    }

    @Test func `several secrets with an attribute are listed and removed together`() throws {
        for index in 0..<5 {
            let attributes = ["program": "several", "index": String(index)]
            try SecretService.store("secret \(index)", label: "\(index)", attributes: attributes, schema: schema)
        }
        let all = try SecretService.list(["program": "several"], schema: schema)
        #expect(all.map(\.secret).sorted() == (0..<5).map { "secret \($0)" })
        #expect(all.allSatisfy { $0.secret == "secret \($0.attributes["index"] ?? "")" })
        #expect(!String(reflecting: all).contains("secret 1"))
        try SecretService.remove(["program": "several"], schema: schema)
        #expect(try SecretService.list(["program": "several"], schema: schema).isEmpty)
    }

    @Test func `a secret that cannot be stored is refused`() throws {
        let many = Dictionary(uniqueKeysWithValues: (0..<40).map { ("a\($0)", "b") })
        #expect(throws: SecretService.Failure.self) {
            try SecretService.store("s", label: "l", attributes: many, schema: schema)
        }
        #expect(throws: SecretService.Failure.self) {
            try SecretService.store("half\0a secret", label: "l", attributes: ["a": "b"], schema: schema)
        }
        #expect(try secret(of: ["a": "b"], schema) == nil)
    }

    @Test func `many threads can use the service concurrently`() async throws {
        try await withThrowingTaskGroup { group in
            for index in 0..<16 {
                group.addTask {
                    let attributes = ["program": "threads", "index": String(index)]
                    try SecretService.store("\(index)", label: "l", attributes: attributes, schema: schema)
                    #expect(try secret(of: attributes, schema) == "\(index)")
                }
            }
            try await group.waitForAll()
        }
        #expect(try SecretService.list(["program": "threads"], schema: schema).count == 16)
    }
}
