// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
public import Foundation
internal import LoadingEngine
internal import LoadingModel
internal import SystemLibraries

/// A service on the local network (DNS-SD, RFC 6763), like Apple's `NetService`, for ``URLSession/streamTask(with:)``.
///
/// Services are resolved with Avahi: this requires `libavahi-client.so.3`, which is loaded at run time, and a running
/// `avahi-daemon`. The delegate is called on the run loop of the thread that made the object, in its default mode, unless
/// ``schedule(in:forMode:)`` and ``remove(from:forMode:)`` change that. The threads of Swift tasks do not run a run loop.
///
/// Publishing services, monitoring TXT records, and browsing are not supported.
open class NetService: NSObject, @unchecked Sendable {
    /// An error of a service.
    public enum ErrorCode: Int, Sendable {
        /// Avahi failed, or the service's host sent an invalid reply.
        case unknownError = -72_000
        /// The name is used by another service; never reported here.
        case collisionError = -72_001
        /// The service does not exist; never reported here: the error is ``timeoutError``.
        case notFoundError = -72_002
        /// The service is already being resolved.
        case activityInProgress = -72_003
        /// The name, type or domain is not valid.
        case badArgumentError = -72_004
        /// The service was stopped; never reported here: ``NetServiceDelegate/netServiceDidStop(_:)`` is called.
        case cancelledError = -72_005
        /// The service is not configured correctly; never reported here.
        case invalidError = -72_006
        /// The service did not respond in time.
        case timeoutError = -72_007
        /// Avahi's client library is not installed, or its daemon is not running.
        case missingRequiredConfigurationError = -72_008
    }

    /// The key for the code in an error dictionary, "NSNetServicesErrorCode"; see ``ErrorCode``.
    open class var errorCode: String { "NSNetServicesErrorCode" }

    /// The key for the domain in an error dictionary, "NSNetServicesErrorDomain".
    open class var errorDomain: String { "NSNetServicesErrorDomain" }

    private let service: ServiceName
    private let givenType: String
    private let givenDomain: String
    private let givenPort: Int
    private let notices = RunLoopNotices()

    // `lock` guards all properties below, which makes `@unchecked Sendable` correct.
    private let lock = NSLock()
    private weak var storedDelegate: (any NetServiceDelegate)?
    private var location: ServiceLookups.Location?
    private var resolution = 0
    private var isResolving = false
    /// Whether a resolution was started and has not been stopped.
    private var mayStop = false
    private var cancelLookup: (@Sendable () -> Void)?

    /// Makes a service to be resolved.
    ///
    /// - Parameters:
    ///   - domain: The domain, such as "local."; empty for the default.
    ///   - type: The type with its protocol, such as "_ipp._tcp.".
    ///   - name: The name of the service, such as "Office printer".
    public convenience init(domain: String, type: String, name: String) {
        self.init(domain: domain, type: type, name: name, port: -1)
    }

    /// Makes a service with a port.
    ///
    /// The given port is the value of ``port`` until the service is resolved; a stream task still resolves the service.
    ///
    /// - Parameters:
    ///   - domain: The domain, such as "local."; empty for the default.
    ///   - type: The type with its protocol, such as "_ipp._tcp.".
    ///   - name: The name of the service, such as "Office printer".
    ///   - port: The initial value of ``port``.
    public init(domain: String, type: String, name: String, port: Int32) {
        service = ServiceName(name: name, type: type, domain: domain)
        (givenType, givenDomain, givenPort) = (type, domain, Int(port))
        super.init()
        notices.schedule(in: .current, forMode: .default)
    }

    deinit { cancelLookup?() }

    // MARK: Properties

    /// The domain that the service was made with.
    open var domain: String { givenDomain }

    /// The type that the service was made with.
    open var type: String { givenType }

    /// The name that the service was made with.
    open var name: String { service.name }

    /// The port: the initial port until the service is resolved; -1 if there is no port.
    open var port: Int { lock.withLock { location?.port } ?? givenPort }

    /// The name of the service's host, with a trailing dot ("printer.local."); nil until the service is resolved.
    open var hostName: String? { lock.withLock { location?.host }.map { $0 + "." } }

    /// The addresses of the service, each a `sockaddr_in` or `sockaddr_in6`; nil until the service is resolved.
    open var addresses: [Data]? {
        lock.withLock { location }.map { location in location.addresses.map { Data($0.socketAddress(port: location.port)) } }
    }

    /// Returns the data of the service's TXT record; nil until the service is resolved, and if the service has no valid record.
    ///
    /// - Returns: Data for ``dictionary(fromTXTRecord:)``.
    open func txtRecordData() -> Data? {
        lock.withLock { location }.flatMap { $0.text.isEmpty ? nil : Data($0.text) }
    }

    /// The delegate, which is not retained.
    open var delegate: (any NetServiceDelegate)? {
        get { lock.withLock { storedDelegate } }
        set { lock.withLock { storedDelegate = newValue } }
    }

    // MARK: Resolving

    /// Resolves the service and reports the result to the delegate.
    ///
    /// - Parameter timeout: The timeout in seconds; 0 means no timeout.
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
        let cancelLookup = ServiceLookups.shared.find(service) { [weak self] in self?.ended($0, number) }
        let isOver = lock.withLock { () -> Bool in
            guard isResolving, resolution == number else { return true }
            self.cancelLookup = cancelLookup
            return false
        }
        if isOver { cancelLookup() }
        guard timeout > 0, timeout < 1e9 else { return }
        DispatchQueue.global().asyncAfter(deadline: .now() + timeout) { [weak self] in self?.ended(nil, number) }
    }

    /// Stops resolving the service; calls the delegate if a resolution was started.
    open func stop() {
        let wasBegun = lock.withLock { () -> Bool in
            defer { mayStop = false }
            return mayStop
        }
        cancelResolution()
        guard wasBegun else { return }
        tell { $1.netServiceDidStop($0) }
        notices.end()
    }

    private func cancelResolution() {
        let cancelLookup = lock.withLock { () -> (@Sendable () -> Void)? in
            isResolving = false
            defer { self.cancelLookup = nil }
            return self.cancelLookup
        }
        cancelLookup?()
    }

    /// Handles the result; nil means that the timeout has expired.
    private func ended(_ result: Result<ServiceLookups.Location, Avahi.Failure>?, _ number: Int) {
        let isCurrent = lock.withLock { () -> Bool in
            guard isResolving, resolution == number else { return false }
            isResolving = false
            if case .success(let location)? = result { self.location = location }
            return true
        }
        guard isCurrent else { return }
        cancelResolution()
        switch result {
        case nil: tell(.timeoutError)
        case .success?: tell { $1.netServiceDidResolveAddress($0) }
        case .failure(.absent)?: tell(.missingRequiredConfigurationError)
        case .failure(.invalid)?: tell(.badArgumentError)
        case .failure(.failed)?: tell(.unknownError)
        }
        notices.end()
    }

    // MARK: Calling the delegate

    /// Adds a run loop on which the delegate is called.
    ///
    /// - Parameters:
    ///   - aRunLoop: The run loop.
    ///   - mode: Its mode.
    open func schedule(in aRunLoop: RunLoop, forMode mode: RunLoop.Mode) { notices.schedule(in: aRunLoop, forMode: mode) }

    /// Removes a run loop on which the delegate was called.
    ///
    /// - Parameters:
    ///   - aRunLoop: The run loop.
    ///   - mode: Its mode.
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

    /// Parses a TXT record (RFC 6763, section 6).
    ///
    /// - Parameter txtData: The data of the record; anything after an invalid length is ignored.
    /// - Returns: The first value of each key; empty for a key without a value.
    open class func dictionary(fromTXTRecord txtData: Data) -> [String: Data] { TXTRecord.values(of: txtData) }

    /// Encodes a TXT record (RFC 6763, section 6).
    ///
    /// - Parameter txtDictionary: The keys and values. An entry is omitted if its key is empty, is not ASCII or contains `=`, or if
    ///   the entry is longer than 255 bytes.
    /// - Returns: The data of the record, sorted by key.
    open class func data(fromTXTRecord txtDictionary: [String: Data]) -> Data { TXTRecord.data(of: txtDictionary) }

    // MARK: Stream tasks

    /// The destination of a stream task: the resolved service, or a service to resolve.
    var order: StreamOrder {
        guard let location = lock.withLock({ location }) else { return StreamOrder(service: service) }
        return StreamOrder(host: location.host, port: location.port, addresses: location.addresses.map(\.text))
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
            // Keys are case-insensitive.
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
        // A record has at least one string.
        return Data(data.isEmpty ? [0] : data)
    }

    private static func isKey(_ key: some Collection<UInt8>) -> Bool {
        !key.isEmpty && key.allSatisfy { 0x20...0x7E ~= $0 && $0 != UInt8(ascii: "=") }
    }
}
