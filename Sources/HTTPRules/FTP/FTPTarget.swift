// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials
import HTTPWire

/// The target of an `ftp` or `ftps` URL (RFC 1738, section 3.2): a server, a login, and the path of a file or directory.
///
/// Path segments are percent-decoded separately, so `%2F` is part of a name: `ftp://host/%2Fetc/motd` starts at the server's root,
/// and so does `ftp://host//etc/motd`. All other paths start at the login directory.
package struct FTPTarget: Hashable, Sendable {
    package enum Malformed: Error, Hashable, Sendable {
        case authority(RequestTarget.Malformed)
        /// A control character, such as a line end, which would end the FTP command, or byte FF, which is reserved by Telnet.
        case controlCharacter
        /// `;type=` with a value other than a, i or d.
        case badType

        package var message: String {
            switch self {
            case .authority(let reason): reason.message
            case .controlCharacter: "its path, user or password contains a control character, which FTP does not allow"
            case .badType: "the value of its ;type= is not a, i or d (RFC 1738, section 3.2.2)"
            }
        }
    }

    /// The server as an `http` or `https` origin, which is used to look up trust and proxy settings.
    package let origin: Origin
    /// The percent-decoded user; nil if the URL contains none.
    package let user: String?
    package let password: String?
    /// The directories to change to, in order.
    package let directories: [[UInt8]]
    /// The name of the file; nil if the target is the last of ``directories``.
    package let name: [UInt8]?
    /// Whether the URL has `;type=a`: the file is transferred as text, with CRLF line ends.
    package let isText: Bool
    /// Whether the URL has `;type=d`: only the names in the directory are listed.
    package let listsNames: Bool

    /// Whether a URL's scheme is `ftp` or `ftps`.
    package static func isFTP(_ url: URL) -> Bool {
        guard let scheme = url.scheme?.lowercased() else { return false }
        return scheme == "ftp" || scheme == "ftps"
    }

    package init(_ url: URL) throws(Malformed) {
        let text = url.absoluteString
        guard let scheme = url.scheme?.lowercased(), scheme == "ftp" || scheme == "ftps" else {
            throw .authority(.unsupportedScheme)
        }
        let isSecure = scheme == "ftps"
        let target: RequestTarget
        do {
            target = try RequestTarget(text: (isSecure ? "https" : "http") + text.dropFirst(scheme.utf8.count))
        } catch {
            throw .authority(error)
        }
        origin = Origin(
            scheme: target.origin.scheme, host: target.origin.host,
            port: url.port == nil ? isSecure ? 990 : 21 : target.origin.port)
        (user, password) = (target.user, target.password)
        for text in [target.user, target.password]
        where text.map({ OctetText.octets(of: $0).contains(where: Self.isForbidden) }) == true {
            throw .controlCharacter
        }
        var parts = Array(target.path.utf8.dropFirst()).split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        let type = try Self.takeType(&parts)
        isText = type == UInt8(ascii: "a")
        listsNames = type == UInt8(ascii: "d")
        var names: [[UInt8]] = []
        for part in parts {
            let name = PercentEncoding.bytes(part)
            guard !name.contains(where: Self.isForbidden) else { throw .controlCharacter }
            names.append(name)
        }
        let last = names.popLast() ?? []
        let isAtRoot = names.first?.isEmpty == true
        var directories = names.filter { !$0.isEmpty }
        if isAtRoot { directories.insert([UInt8(ascii: "/")], at: 0) }
        if listsNames, !last.isEmpty { directories.append(last) }
        name = listsNames || last.isEmpty ? nil : last
        self.directories = directories
    }

    private static func takeType(_ parts: inout [ArraySlice<UInt8>]) throws(Malformed) -> UInt8? {
        guard let last = parts.last, let semicolon = last.lastIndex(of: UInt8(ascii: ";")) else { return nil }
        let mark = last[semicolon...].dropFirst()
        guard mark.prefix(5).map(ASCII.lowercased).elementsEqual("type=".utf8) else { return nil }
        let value = mark.dropFirst(5)
        guard value.count == 1, let type = value.first.map(ASCII.lowercased), "aid".utf8.contains(type) else { throw .badType }
        parts[parts.count - 1] = last[..<semicolon]
        return type
    }

    private static func isForbidden(_ byte: UInt8) -> Bool { byte < 0x20 || byte == 0x7F || byte == 0xFF }
}
