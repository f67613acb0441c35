// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC
import Synchronization

/// Looks up addresses that are validated with DNSSEC (RFC 4035), through libunbound.
///
/// The library asks the system's name servers, and validates their answers locally.
///
/// A call blocks until the name servers answer. Several threads may call at the same time.
package enum Unbound {
    /// The result of a lookup.
    package enum Answer: Sendable, Hashable {
        /// Addresses of 4 or 16 bytes each, and their TTL. Empty if the name has no addresses of the family.
        case addresses([[UInt8]], seconds: Int)
        /// The zone is not signed, so the answer cannot be validated.
        case unsigned
        /// The answer is forged, or the zone is signed incorrectly.
        case bogus(String)
        case failed(String)
        /// No name server answered, or all of them answered with an error.
        case unanswered(String)
    }

    /// Sendable because libunbound locks the state that the pointer refers to.
    private final class Context: @unchecked Sendable {
        let library: SystemLibrary.Functions
        let pointer: UnsafeMutableRawPointer

        init(_ library: SystemLibrary.Functions, _ pointer: UnsafeMutableRawPointer) {
            self.library = library
            self.pointer = pointer
        }

        deinit { clib_unbound_free(library.table, pointer) }
    }

    static let library = SystemLibrary.functions(of: ["libunbound.so.8"], clib_unbound_load)

    /// Where distributions install the DNS root key.
    private static let keyFiles = [
        "/usr/share/dns/root.key", "/var/lib/unbound/root.key", "/etc/unbound/root.key",
        "/usr/share/dnssec-root/trusted-key.key", "/etc/trusted-key.key",
    ]

    private static let current = Mutex<(context: Context, stamp: [Int])?>(nil)

    package static func lookUp(_ host: String, isV6: Bool) -> Answer {
        guard let library else { return .failed("libunbound is not installed") }
        let context: Context
        switch self.context(of: library) {
        case .success(let made): context = made
        case .failure(let error): return .failed(error.text)
        }
        var answer = clib_unbound_answer()
        let isAnswered = clib_unbound_look_up(library.table, context.pointer, host, isV6 ? 1 : 0, &answer) != 0
        let text = SystemLibrary.text(answer.text)
        guard isAnswered else { return .failed(text) }
        if answer.is_bogus != 0 { return .bogus(text) }
        guard answer.code == 0 || answer.is_name_unknown != 0 else {
            return .unanswered("the name server responded with the code \(answer.code)")
        }
        guard answer.count > 0 else { return .addresses([], seconds: Int(answer.ttl)) }
        guard answer.is_secure != 0 else { return .unsigned }
        return .addresses(SystemLibrary.addresses(answer.addresses, answer.count, isV6: isV6), seconds: Int(answer.ttl))
    }

    /// Whether libunbound is installed; opens it on first use.
    package static var isAvailable: Bool { library != nil }

    /// Asks for the records of a type.
    ///
    /// - Returns: The reply, which may say that there are none; the reason why there is no reply; or nil if the name's zone is not
    ///   signed.
    package static func ask(_ name: String, type: Int) -> NameServerReply? {
        guard let library else { return .failed("libunbound is not installed") }
        let context: Context
        switch self.context(of: library) {
        case .success(let made): context = made
        case .failure(let error): return .failed(error.text)
        }
        var answer = clib_unbound_answer()
        let message = NameServerReply.buffer {
            clib_unbound_ask(library.table, context.pointer, name, CInt(type), $0, $1, &answer)
        }
        guard answer.is_bogus == 0 else { return .failed(SystemLibrary.text(answer.text)) }
        guard !message.isEmpty else {
            let text = SystemLibrary.text(answer.text)
            return .failed(text.isEmpty ? "the name server responded with the code \(answer.code)" : text)
        }
        guard answer.code == 0 || answer.is_name_unknown != 0 else {
            return .failed("the name server responded with the code \(answer.code)")
        }
        return answer.is_secure != 0 ? .message(message) : nil
    }

    /// Discards the cached answers.
    ///
    /// Never blocks: if another thread holds the lock, that thread is already creating a new context.
    package static func forget() { current.withLockIfAvailable { $0 = nil } }

    private struct Failure: Error {
        let text: String
    }

    /// Returns the current context, or a new context if the system's name servers have changed.
    private static func context(of library: SystemLibrary.Functions) -> Result<Context, Failure> {
        let stamp = Self.stamp(of: "/etc/resolv.conf")
        return current.withLock { current in
            if let current, current.stamp == stamp { return .success(current.context) }
            guard let keyFile = keyFiles.first(where: { access($0, R_OK) == 0 }) else {
                return .failure(Failure(text: "the DNSSEC root key is not installed (\(keyFiles[0]))"))
            }
            var failure = clib_unbound_failure()
            guard let pointer = clib_unbound_create(library.table, keyFile, &failure) else {
                let text = SystemLibrary.text(failure.text)
                return .failure(Failure(text: "libunbound cannot be set up: \(text)"))
            }
            let context = Context(library, pointer)
            current = (context, stamp)
            return .success(context)
        }
    }

    private static func stamp(of path: String) -> [Int] {
        var facts = stat()
        guard stat(path, &facts) == 0 else { return [] }
        return [Int(facts.st_ino), Int(facts.st_size), facts.st_mtim.tv_sec, facts.st_mtim.tv_nsec]
    }
}
