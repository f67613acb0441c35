// SPDX-License-Identifier: Apache-2.0

import HTTPRules
import HTTPTransport
import LibC

/// Implements the helper functions of proxy scripts.
///
/// A call may take as long as a host name lookup.
enum ProxyScriptHelper {
    static func answer(_ question: String, _ name: String) -> String? {
        switch question {
        case "address": return addresses(name, family: AF_INET).first
        case "addresses":
            let all = addresses(name, family: AF_UNSPEC)
            return all.isEmpty ? nil : all.joined(separator: ";")
        case "me": return ownAddress()
        case "network":
            let parts = name.split(separator: " ")
            guard parts.count == 2 else { return nil }
            return ProxyExceptions([String(parts[1])]).contains(String(parts[0])) ? "yes" : nil
        default: return nil
        }
    }

    private static func addresses(_ name: String, family: CInt) -> [String] {
        guard !name.isEmpty, name.utf8.count <= 255 else { return [] }
        var hints = addrinfo()
        hints.ai_family = family
        hints.ai_protocol = CInt(IPPROTO_TCP)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(name, nil, &hints, &list) == 0 else { return [] }
        defer { if let list { freeaddrinfo(list) } }
        var found: [String] = []
        var next = list
        while let entry = next?.pointee, found.count < 16 {
            next = entry.ai_next
            if let address = entry.ai_addr, let text = text(address, entry.ai_addrlen), !found.contains(text) {
                found.append(text)
            }
        }
        return found
    }

    /// Returns the local address of outgoing connections; sends nothing to find it.
    private static func ownAddress() -> String? {
        let descriptor = socket(AF_INET, CInt(SOCK_DGRAM.rawValue) | CInt(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        // An address of TEST-NET-1 (RFC 5737), port 9, in the layout of `sockaddr_in`. The bytes are set directly, because the
        // module that declares the members of `sockaddr_in` varies.
        var address: [UInt8] = [0, 0, 0, 9, 192, 0, 2, 1] + Array(repeating: 0, count: 8)
        var length = socklen_t(address.count)
        return address.withUnsafeMutableBytes { bytes in
            bytes.storeBytes(of: UInt16(AF_INET), as: UInt16.self)
            guard let pointer = bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self),
                connect(descriptor, pointer, length) == 0,
                getsockname(descriptor, pointer, &length) == 0
            else { return nil }
            return text(pointer, length)
        }
    }

    private static func text(_ address: UnsafeMutablePointer<sockaddr>, _ length: socklen_t) -> String? {
        var buffer = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        guard getnameinfo(address, length, &buffer, socklen_t(buffer.count), nil, 0, NI_NUMERICHOST) == 0 else { return nil }
        return String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
