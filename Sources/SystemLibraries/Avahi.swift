// SPDX-License-Identifier: Apache-2.0

import CSystemLibraries
import LibC

/// Finds services on the local network (DNS-SD, RFC 6763), through Avahi's client library and its daemon.
///
/// The connection is for use by one thread. Each request blocks for at most 25 seconds if the daemon does not answer.
package final class Avahi {
    /// Why no service was found.
    package enum Failure: Error, Sendable, Hashable {
        /// The library is not installed, or the daemon is not running.
        case absent(String)
        /// The request's name, type or domain cannot belong to a service.
        case invalid(String)
        case failed(String)
    }

    package struct Address: Sendable, Hashable {
        /// 4 or 16 bytes.
        package let bytes: [UInt8]
        /// The index of the interface of a link-local IPv6 address; 0 for all others.
        package let scope: UInt32
    }

    /// The location of a service, as announced on the network and validated by ``Service/init(host:port:address:interface:text:)``.
    package struct Service: Sendable, Hashable {
        /// The host name, without a trailing dot.
        package let host: String
        package let port: Int
        package let address: Address
        /// The data of the TXT record.
        package let text: [UInt8]
    }

    /// The result of one of the ways to ask a question.
    package enum Outcome: Sendable, Hashable {
        case found(Service)
        /// No answer has arrived yet; the query continues.
        case silent
        case failed(Failure)
    }

    package struct Event: Sendable {
        package let question: Int
        /// The number of the way, from 0 up to, but not including, ``wayCount``.
        package let way: Int
        package let outcome: Outcome
    }

    /// Interrupts a thread's wait, from any other thread.
    package final class Bell: Sendable {
        fileprivate let descriptor: CInt

        package init() { descriptor = clib_bell_open() }

        deinit { if descriptor >= 0 { close(descriptor) } }

        package func ring() { clib_bell_ring(descriptor) }
    }

    static let library = SystemLibrary.functions(of: ["libavahi-client.so.3"], clib_avahi_load)

    /// The number of ways to ask a question: over IPv4 for IPv4 addresses, over IPv6 for IPv6 addresses, and over IPv4 for IPv6
    /// addresses.
    package static let wayCount = Int(CLIB_AVAHI_WAYS)

    private let client: OpaquePointer
    private let bell: Bell
    private var questions: [Int: OpaquePointer] = [:]

    private init(_ client: OpaquePointer, _ bell: Bell) {
        self.client = client
        self.bell = bell
    }

    deinit {
        for question in questions.values { clib_avahi_drop(question) }
        clib_avahi_close(client)
    }

    /// Connects to the daemon.
    ///
    /// - Parameter bell: The bell that interrupts waits.
    /// - Returns: The connection.
    /// - Throws: ``Failure/absent(_:)`` if the library or the daemon is missing; otherwise another failure.
    package static func open(_ bell: Bell) throws(Failure) -> Avahi {
        guard let library else { throw .absent("Avahi's client library is not installed (libavahi-client3 in Debian)") }
        guard bell.descriptor >= 0 else { throw .failed("no file descriptor is available") }
        var failure = clib_avahi_failure()
        guard let client = clib_avahi_open(library.table, bell.descriptor, &failure) else { throw Self.failure(failure) }
        return Avahi(client, bell)
    }

    /// Starts to look for a service.
    ///
    /// The results are events with the question's number.
    ///
    /// - Parameters:
    ///   - number: The number of the question; no other open question may have it.
    ///   - name: The service's instance name ("Office printer").
    ///   - type: The service type with its protocol ("_ipp._tcp").
    ///   - domain: The domain; empty for the default domain.
    package func ask(_ number: Int, name: String, type: String, domain: String) {
        let question = clib_avahi_ask(client, UInt64(number), name, type, domain.isEmpty ? nil : domain)
        questions[number] = question
    }

    /// Ends a question.
    ///
    /// Events of the question may still arrive if they were already queued.
    package func drop(_ number: Int) {
        if let question = questions.removeValue(forKey: number) { clib_avahi_drop(question) }
    }

    /// Waits until something arrives, the bell rings, or the time has passed.
    ///
    /// Waits without a limit if `milliseconds` is nil.
    ///
    /// - Throws: An error if the connection to the daemon is lost. The connection can then no longer be used.
    package func wait(milliseconds: Int?) throws(Failure) {
        var failure = clib_avahi_failure()
        guard clib_avahi_wait(client, CInt(clamping: milliseconds ?? -1), &failure) != 0 else { throw Self.failure(failure) }
    }

    /// Returns the events since the last call, in order.
    package func events() -> [Event] {
        var events: [Event] = []
        while let event = clib_avahi_next(client) {
            events.append(
                Event(question: Int(event.pointee.question), way: Int(event.pointee.way), outcome: Self.outcome(event)))
            clib_avahi_forget(event)
        }
        return events
    }

    private static func outcome(_ event: UnsafeMutablePointer<clib_avahi_event>) -> Outcome {
        switch Int(event.pointee.failure.kind) {
        case CLIB_AVAHI_IS_FOUND: break
        case CLIB_AVAHI_IS_SILENT: return .silent
        default: return .failed(failure(event.pointee.failure))
        }
        let host = SystemLibrary.text(event.pointee.host)
        let address = withUnsafeBytes(of: &event.pointee.address) { Array($0.prefix(event.pointee.address_length)) }
        let text = clib_avahi_text(event).map { Array(UnsafeBufferPointer(start: $0, count: event.pointee.text_length)) }
        do {
            return .found(
                try Service(
                    host: host, port: event.pointee.port, address: address, interface: event.pointee.interface, text: text ?? []))
        } catch {
            return .failed(error)
        }
    }

    private static func failure(_ failure: clib_avahi_failure) -> Failure {
        let text = SystemLibrary.text(failure.text)
        return switch Int(failure.kind) {
        case CLIB_AVAHI_IS_ABSENT:
            .absent("Avahi's daemon does not answer on the system bus; install and start avahi-daemon (\(text))")
        case CLIB_AVAHI_IS_INVALID: .invalid(text)
        default: .failed(text)
        }
    }
}

extension Avahi.Service {
    /// The maximum length of a name in bytes (RFC 1035, section 2.3.4).
    private static let longestHost = 253

    /// Validates the announcement of an untrusted host.
    ///
    /// - Parameters:
    ///   - host: Labels of letters, digits, hyphens and underscores. A host with any other character is refused, because it could
    ///     be taken for another part of a URL.
    ///   - port: 0 means that the service is absent (RFC 6763, section 8).
    ///   - address: 4 or 16 bytes.
    ///   - interface: The interface that the answer arrived on.
    ///   - text: The data of the TXT record; dropped unless all its length prefixes fit.
    /// - Throws: ``Avahi/Failure/failed(_:)`` with the reason why the announcement is invalid.
    package init(host: String, port: UInt16, address: [UInt8], interface: UInt32, text: [UInt8]) throws(Avahi.Failure) {
        let name = host.hasSuffix(".") ? String(host.dropLast()) : host
        let labels = name.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        let isName =
            name.utf8.count <= Self.longestHost
            && labels.allSatisfy { 1...63 ~= $0.count && $0.allSatisfy(Self.isOfName) }
        // A name whose last label starts with a digit could be parsed as an IP address.
        guard isName, let last = labels.last?.first, !(UInt8(ascii: "0")...UInt8(ascii: "9") ~= last) else {
            throw .failed("its host has an invalid name")
        }
        guard port > 0 else { throw .failed("its host announces that it is not available") }
        guard address.count == 4 || address.count == 16 else { throw .failed("its host has an invalid address") }
        let isLinkLocal = address.count == 16 && address[0] == 0xFE && address[1] & 0xC0 == 0x80
        self.host = name
        self.port = Int(port)
        self.address = Avahi.Address(bytes: address, scope: isLinkLocal ? interface : 0)
        self.text = Self.isWhole(text) ? text : []
    }

    private static func isOfName(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "0")...UInt8(ascii: "9"),
            UInt8(ascii: "-"), UInt8(ascii: "_"):
            true
        default: false
        }
    }

    /// Whether the text consists of complete length-prefixed strings (RFC 6763, section 6.1).
    private static func isWhole(_ text: [UInt8]) -> Bool {
        var rest = text[...]
        while let length = rest.first {
            guard rest.count > Int(length) else { return false }
            rest = rest.dropFirst(Int(length) + 1)
        }
        return true
    }
}

extension Avahi.Address {
    /// The address in text form, with the number of its interface as its zone, if any ("fe80::1%2").
    package var text: String {
        var buffer = [CChar](repeating: 0, count: 64)
        let family = bytes.count == 4 ? AF_INET : AF_INET6
        guard inet_ntop(family, bytes, &buffer, socklen_t(buffer.count)) != nil else { return "" }
        let text = String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return scope == 0 ? text : "\(text)%\(scope)"
    }

    /// Returns the address as a `sockaddr_in` or `sockaddr_in6`.
    package func socketAddress(port: Int) -> [UInt8] {
        if bytes.count == 4 {
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = UInt16(clamping: port).bigEndian
            withUnsafeMutableBytes(of: &address.sin_addr) { $0.copyBytes(from: bytes) }
            return withUnsafeBytes(of: &address) { Array($0) }
        }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_port = UInt16(clamping: port).bigEndian
        address.sin6_scope_id = scope
        withUnsafeMutableBytes(of: &address.sin6_addr) { $0.copyBytes(from: bytes.prefix(16)) }
        return withUnsafeBytes(of: &address) { Array($0) }
    }
}
