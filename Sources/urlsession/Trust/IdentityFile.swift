// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// A client certificate's file and the password of its key, from `--cert` and `--p12`.
struct IdentityFile {
    let path: String
    let password: String?

    /// Parses curl's `file:password`: `\:` and `\\` stand for `:` and `\` in the file name.
    ///
    /// - Parameters:
    ///   - text: The option's value.
    ///   - separate: The password from `--pass`, which is used if the value has none.
    init(_ text: String, password separate: String? = nil) {
        var path = ""
        var rest = text[...]
        while let character = rest.popFirst() {
            if character == "\\", let next = rest.first, next == "\\" || next == ":" {
                path.append(next)
                rest.removeFirst()
            } else if character == ":" {
                self.path = path
                password = String(rest)
                return
            } else {
                path.append(character)
            }
        }
        self.path = path
        password = separate
    }

    func pem(key: String?) throws(ToolFailure) -> SecIdentity {
        let pem = try Self.read(path)
        let own = try key.map { path throws(ToolFailure) in try Self.read(path) }
        return try identity(asking: "Enter the password of the key in \(key ?? path)") { password in
            try SecIdentity(pem: pem, key: own, password: password)
        }
    }

    func pkcs12() throws(ToolFailure) -> SecIdentity {
        let file = try Self.read(path)
        return try identity(asking: "Enter the password of \(path)") { password in
            try SecIdentity(pkcs12: file, password: password)
        }
    }

    /// Reads the identity, and asks the user for a missing password if there is a terminal.
    private func identity(asking question: String, _ read: (String?) throws -> SecIdentity) throws(ToolFailure) -> SecIdentity {
        do {
            do {
                return try read(password)
            } catch  where password == nil && (error as NSError).code == Int(errSecAuthFailed) && PasswordPrompt.isPossible {
                return try read(try PasswordPrompt.ask(question))
            }
        } catch let failure as ToolFailure {
            throw failure
        } catch {
            throw ToolFailure(58, "cannot use the certificate of \(path): \((error as NSError).localizedDescription)")
        }
    }

    private static func read(_ path: String) throws(ToolFailure) -> Data {
        try ToolFailure.describing(58, "cannot read \(path)") { try Data(contentsOf: URL(fileURLWithPath: path)) }
    }
}
