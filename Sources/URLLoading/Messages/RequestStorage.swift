// SPDX-License-Identifier: Apache-2.0

import Foundation
import HTTPWire
import LoadingModel

/// The storage of ``URLRequest``: the engine's request, and the properties that the engine does not know.
struct RequestStorage: Sendable {
    /// Flags of a request that the engine represents differently or does not know.
    ///
    /// All are off by default.
    struct Options: OptionSet {
        let rawValue: UInt16
        static let usesPipelining = Options(rawValue: 1 << 0)
        static let attributedToUser = Options(rawValue: 1 << 6)
        static let requiresDNSSEC = Options(rawValue: 1 << 7)
        static let allowsPersistentDNS = Options(rawValue: 1 << 8)

        mutating func set(_ option: Options, _ isOn: Bool) {
            if isOn { insert(option) } else { remove(option) }
        }
    }

    /// Rarely used properties, in a separate object so that most requests need only one allocation.
    ///
    /// Sendable because it is immutable: a change creates a new object. As on Apple's platforms, the app shares the body stream and
    /// the properties at its own risk.
    private final class RareProperties: @unchecked Sendable {
        let stream: InputStream?
        let properties: [String: Any]

        init(_ stream: InputStream?, _ properties: [String: Any]) {
            self.stream = stream
            self.properties = properties
        }
    }

    static let defaultTimeout: TimeInterval = 60

    var load: LoadRequest
    private var rareProperties: RareProperties?
    var stream: InputStream? {
        get { rareProperties?.stream }
        set { if newValue !== stream { rareProperties = RareProperties(newValue, properties) } }
    }
    var properties: [String: Any] {
        get { rareProperties?.properties ?? [:] }
        set { rareProperties = RareProperties(stream, newValue) }
    }
    var options: Options = [] {
        didSet { load.needs.requiresDNSSEC = options.contains(.requiresDNSSEC) }
    }
    var serviceType: NSURLRequest.NetworkServiceType {
        get { NSURLRequest.NetworkServiceType(load.needs.service) }
        set { load.needs.service = newValue.service }
    }
    var cookiePartition: String? {
        get { load.cookiePartition }
        set { load.cookiePartition = newValue }
    }
    /// The timeout that the app sees, whether it was set or not.
    var timeout: TimeInterval { load.timeout ?? Self.defaultTimeout }
    /// Whether header fields were ever set, to distinguish an empty dictionary from nil.
    private var hasHeaderFields = false

    init(load: LoadRequest) { self.load = load }

    init(load: LoadRequest, template: RequestStorage?) {
        self.load = load
        hasHeaderFields = !load.headers.isEmpty
        guard let template else { return }
        options = template.options
        if load.cookiePartition == nil { cookiePartition = template.cookiePartition }
        rareProperties = template.rareProperties
        switch load.body {
        case .stream, .streamOnDemand: break
        case .none, .data, .file: stream = nil
        }
    }

    /// The options, with the prohibited networks in bits 1 to 4, and the assumption of HTTP/3 in bit 5.
    var archivedOptions: UInt16 {
        get {
            options.rawValue | UInt16(load.needs.prohibited.rawValue & 0x0F) << 1 | (load.assumesHTTP3 ? Self.assumptionBit : 0)
        }
        set {
            options = Options(rawValue: newValue & ~0x3E)
            load.assumesHTTP3 = newValue & Self.assumptionBit != 0
            load.needs.prohibited = ProhibitedNetworks(rawValue: UInt8(truncatingIfNeeded: newValue >> 1) & 0x0F)
        }
    }

    private static let assumptionBit: UInt16 = 1 << 5

    mutating func prohibit(_ network: ProhibitedNetworks, _ isProhibited: Bool) {
        if isProhibited { load.needs.prohibited.insert(network) } else { load.needs.prohibited.remove(network) }
    }

    // MARK: Method

    /// Uppercases the methods that are recognized in any case; other methods are case-sensitive.
    static func normalizedMethod(_ method: String) -> String {
        let capitals = method.uppercased()
        return switch capitals {
        case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT": capitals
        default: method
        }
    }

    // MARK: Header fields

    var headerFields: [String: String]? {
        get { hasHeaderFields ? load.headers.dictionary(separator: ",") : nil }
        set {
            load.headers = HeaderBlock()
            hasHeaderFields = newValue != nil
            // Sorted, so that equal dictionaries produce equal messages.
            for (name, value) in (newValue ?? [:]).sorted(by: { $0.key < $1.key }) { add(value, for: name) }
        }
    }

    func value(for field: String) -> String? {
        let values = load.headers.all(field)
        return values.count > 1 ? values.joined(separator: ",") : values.first
    }

    mutating func set(_ value: String?, for field: String) {
        guard let value = value.map(ASCII.fieldValue) else { return load.headers.remove(field) }
        hasHeaderFields = true
        guard let index = load.headers.index(of: field) else { return load.headers.append(field, value) }
        load.headers.set(load.headers.name(at: index), value)
    }

    mutating func add(_ value: String, for field: String) {
        let value = ASCII.fieldValue(value)
        set(self.value(for: field).map { "\($0),\(value)" } ?? value, for: field)
    }

    // MARK: Body

    var body: Data? {
        get { if case .data(let data) = load.body { data } else { nil } }
        set {
            stream = nil
            load.body = newValue.map { .data($0) } ?? .none
        }
    }

    /// The stream; setting it also changes the body in the engine's request.
    var bodyStream: InputStream? {
        get { stream }
        set {
            stream = newValue
            load.body = newValue == nil ? .none : .streamOnDemand
        }
    }

    // MARK: Comparing

    func equals(_ other: RequestStorage) -> Bool {
        load.url == other.load.url && load.mainDocumentURL == other.load.mainDocumentURL && load.method == other.load.method
            && timeout == other.timeout && load.cachePolicy == other.load.cachePolicy
            && load.handlesCookies == other.load.handlesCookies && body == other.body && stream === other.stream
            && load.needs.prohibited == other.load.needs.prohibited && options == other.options
            && load.assumesHTTP3 == other.load.assumesHTTP3
            && serviceType == other.serviceType && cookiePartition == other.cookiePartition
            && (load.headers == other.load.headers || headerFields == other.headerFields)
    }
}
