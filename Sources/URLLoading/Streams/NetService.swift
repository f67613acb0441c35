//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

internal import Dispatch
public import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import SystemLibraries

/// A service of the local network (DNS-SD, RFC 6763), as Apple's `NetService`, for ``URLSession/streamTask(with:)``.
///
/// It is found by Avahi: `libavahi-client.so.3`, loaded at run time, and `avahi-daemon`, which has to run. What the delegate is told, it is told in the run
/// loop of the thread that made the object, in its default mode, unless that is changed; a task of Swift's has no run loop that runs.
///
/// There is no way to publish a service, to watch its TXT record, or to browse.
open class NetService: NSObject, @unchecked Sendable {
    /// What went wrong with a service.
    public enum ErrorCode: Int, Sendable {
        /// Avahi has failed, or what the service's host says of it makes no sense.
        case unknownError = -72_000
        /// Another service has the name; told by nothing here.
        case collisionError = -72_001
        /// There is no such service; told by nothing here, where ``timeoutError`` is.
        case notFoundError = -72_002
        /// The service is being looked for already.
        case activityInProgress = -72_003
        /// No service can have such a name, type or domain.
        case badArgumentError = -72_004
        /// The service was stopped; told by nothing here, where ``NetServiceDelegate/netServiceDidStop(_:)`` is.
        case cancelledError = -72_005
        /// The service is not set up as it has to be; told by nothing here.
        case invalidError = -72_006
        /// There was no answer in time.
        case timeoutError = -72_007
        /// Avahi's client library is not installed, or its daemon does not run.
        case missingRequiredConfigurationError = -72_008
    }

    /// The key of the code in a dictionary that describes an error, "NSNetServicesErrorCode"; see ``ErrorCode``.
    open class var errorCode: String { "NSNetServicesErrorCode" }

    /// The key of the domain in a dictionary that describes an error, "NSNetServicesErrorDomain".
    open class var errorDomain: String { "NSNetServicesErrorDomain" }

    private let service: ServiceName
    private let givenType: String
    private let givenDomain: String
    private let givenPort: Int
    private let notices = RunLoopNotices()

    // `lock` guards all that follows, which makes `@unchecked Sendable` true.
    private let lock = NSLock()
    private weak var storedDelegate: (any NetServiceDelegate)?
    private var place: ServiceLookups.Place?
    private var resolution = 0
    private var isResolving = false
    /// What was begun was not stopped yet.
    private var mayStop = false
    private var giveUp: (@Sendable () -> Void)?

    /// Makes a service that can be looked for.
    ///
    /// - Parameters:
    ///   - domain: As in "local."; empty for the default.
    ///   - type: With the protocol, as in "_ipp._tcp.".
    ///   - name: The service's own, as in "Office printer".
    public convenience init(domain: String, type: String, name: String) {
        self.init(domain: domain, type: type, name: name, port: -1)
    }

    /// Makes a service with a port, which counts until the service was found; a stream task looks for the service all the same.
    ///
    /// - Parameters:
    ///   - domain: As in "local."; empty for the default.
    ///   - type: With the protocol, as in "_ipp._tcp.".
    ///   - name: The service's own, as in "Office printer".
    ///   - port: What ``port`` is at first.
    public init(domain: String, type: String, name: String, port: Int32) {
        service = ServiceName(name: name, type: type, domain: domain)
        (givenType, givenDomain, givenPort) = (type, domain, Int(port))
        super.init()
        notices.schedule(in: .current, forMode: .default)
    }

    deinit { giveUp?() }

    // MARK: What is known

    /// The domain that it was made with.
    open var domain: String { givenDomain }

    /// The type that it was made with.
    open var type: String { givenType }

    /// The name that it was made with.
    open var name: String { service.name }

    /// The port, once the service was found; what it was made with before, or -1.
    open var port: Int { lock.withLock { place?.port } ?? givenPort }

    /// The name of the host that has the service, with a dot at its end ("printer.local."); nil until the service was found.
    open var hostName: String? { lock.withLock { place?.host }.map { $0 + "." } }

    /// The addresses of the service, a `sockaddr_in` or `sockaddr_in6` each; nil until it was found.
    open var addresses: [Data]? {
        lock.withLock { place }.map { place in place.addresses.map { Data($0.socketAddress(port: place.port)) } }
    }

    /// The data of the service's TXT record; nil until the service was found, and where what its host says is no such record.
    ///
    /// - Returns: What ``dictionary(fromTXTRecord:)`` takes.
    open func txtRecordData() -> Data? {
        lock.withLock { place }.flatMap { $0.text.isEmpty ? nil : Data($0.text) }
    }

    /// Who is told what comes of it; not kept alive.
    open var delegate: (any NetServiceDelegate)? {
        get { lock.withLock { storedDelegate } }
        set { lock.withLock { storedDelegate = newValue } }
    }

    // MARK: Looking for it

    /// Looks for the service, and tells the delegate what came of that.
    ///
    /// - Parameter timeout: Seconds; 0 looks until the service is found, or ``stop()``.
    open func resolve(withTimeout timeout: TimeInterval) {
        let number = lock.withLock { () -> Int? in
            guard !isResolving else { return nil }
            (isResolving, mayStop) = (true, true)
            resolution += 1
            return resolution
        }
        guard let number else { return tell(.activityInProgress) }
        notices.begin()
        tell { $1.netServiceWillResolve($0) }
        let giveUp = ServiceLookups.shared.find(service) { [weak self] in self?.ended($0, number) }
        let isOver = lock.withLock { () -> Bool in
            guard isResolving, resolution == number else { return true }
            self.giveUp = giveUp
            return false
        }
        if isOver { giveUp() }
        guard timeout > 0, timeout < 1e9 else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { [weak self] in self?.ended(nil, number) }
    }

    /// Looks for the service no more; the delegate is told so, if it was looked for.
    open func stop() {
        let wasBegun = lock.withLock { () -> Bool in
            defer { mayStop = false }
            return mayStop
        }
        leave()
        guard wasBegun else { return }
        tell { $1.netServiceDidStop($0) }
        notices.end()
    }

    private func leave() {
        let giveUp = lock.withLock { () -> (@Sendable () -> Void)? in
            isResolving = false
            defer { self.giveUp = nil }
            return self.giveUp
        }
        giveUp?()
    }

    /// The service was found, or was not; nil where the time is over.
    private func ended(_ result: Result<ServiceLookups.Place, Avahi.Failure>?, _ number: Int) {
        let isMeant = lock.withLock { () -> Bool in
            guard isResolving, resolution == number else { return false }
            isResolving = false
            if case .success(let place)? = result { self.place = place }
            return true
        }
        guard isMeant else { return }
        leave()
        switch result {
        case nil: tell(.timeoutError)
        case .success?: tell { $1.netServiceDidResolveAddress($0) }
        case .failure(.absent)?: tell(.missingRequiredConfigurationError)
        case .failure(.invalid)?: tell(.badArgumentError)
        case .failure(.failed)?: tell(.unknownError)
        }
        notices.end()
    }

    // MARK: Telling

    /// Has the delegate told in a run loop, too.
    ///
    /// - Parameters:
    ///   - aRunLoop: Of the thread where the delegate is to be told.
    ///   - mode: The mode in which that is.
    open func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { notices.schedule(in: aRunLoop, forMode: mode) }

    /// Tells nothing in a run loop any more.
    ///
    /// - Parameters:
    ///   - aRunLoop: The run loop.
    ///   - mode: The mode in which it was told.
    open func remove(from aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { notices.remove(from: aRunLoop, forMode: mode) }

    private func tell(_ notice: @escaping @Sendable (NetService, any NetServiceDelegate) -> Void) {
        notices.tell { [weak self] in if let self, let delegate { notice(self, delegate) } }
    }

    private func tell(_ error: ErrorCode) {
        tell { service, delegate in
            delegate.netService(
                service,
                didNotResolve: [Self.errorCode: NSNumber(value: error.rawValue), Self.errorDomain: NSNumber(value: 10)])
        }
    }

    // MARK: TXT records

    /// The keys and values of a TXT record (RFC 6763, section 6).
    ///
    /// - Parameter txtData: Its data; what is behind a length that does not fit is dropped.
    /// - Returns: For each key the value that comes first, empty where it has none.
    open class func dictionary(fromTXTRecord txtData: Data) -> [String: Data] { TXTRecord.values(of: txtData) }

    /// A TXT record (RFC 6763, section 6).
    ///
    /// - Parameter txtDictionary: Its keys and values; those whose key is empty, not of ASCII or has `=` in it, and those that come to more than 255 bytes
    ///   together, are left out.
    /// - Returns: Its data, the keys in alphabetical order.
    open class func data(fromTXTRecord txtDictionary: [String: Data]) -> Data { TXTRecord.data(of: txtDictionary) }

    // MARK: For stream tasks

    /// Where a stream task leads: to what was found, or to what is to be found.
    var order: StreamOrder {
        guard let place = lock.withLock({ place }) else { return StreamOrder(service: service) }
        return StreamOrder(host: place.host, port: place.port, addresses: place.addresses.map(\.text))
    }
}

private enum TXTRecord {
    private static let longestData = 65_535

    static func values(of data: Data) -> [String: Data] {
        var values: [String: Data] = [:]
        var seen: Set<String> = []
        var rest = Array(data)[...]
        while let length = rest.popFirst(), rest.count >= Int(length) {
            let entry = rest.prefix(Int(length))
            rest = rest.dropFirst(Int(length))
            let key = entry.prefix { $0 != UInt8(ascii: "=") }
            guard isKey(key) else { continue }
            let text = String(decoding: key, as: UTF8.self)
            // Keys differ by more than case.
            if seen.insert(text.lowercased()).inserted { values[text] = Data(entry.dropFirst(key.count + 1)) }
        }
        return values
    }

    static func data(of values: [String: Data]) -> Data {
        var data: [UInt8] = []
        for (key, value) in values.sorted(by: { $0.key < $1.key }) {
            let entry = Array(key.utf8) + [UInt8(ascii: "=")] + Array(value)
            guard isKey(key.utf8), let length = UInt8(exactly: entry.count), data.count + entry.count < longestData else {
                continue
            }
            data += [length] + entry
        }
        // A record has one string at least.
        return Data(data.isEmpty ? [0] : data)
    }

    private static func isKey(_ key: some Collection<UInt8>) -> Bool {
        !key.isEmpty && key.allSatisfy { 0x20...0x7E ~= $0 && $0 != UInt8(ascii: "=") }
    }
}
