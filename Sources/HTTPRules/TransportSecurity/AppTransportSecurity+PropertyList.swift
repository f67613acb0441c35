// SPDX-License-Identifier: Apache-2.0

package import FoundationEssentials

extension AppTransportSecurity {
    /// Why a property list could not be read.
    package enum Malformed: Error, Hashable, Sendable {
        /// The data is neither an XML nor a binary property list, or is damaged.
        case notAPropertyList
        /// The list or its `NSAppTransportSecurity` is not a dictionary.
        case notADictionary
    }

    /// Reads an Info.plist or the `NSAppTransportSecurity` dictionary itself, as an XML or binary property list.
    ///
    /// An Info.plist without that key yields ``strict``. An invalid value is reported in ``warnings``, and its default applies,
    /// except for pins: all connections to a domain with invalid pins fail.
    package init(propertyList: Data) throws(Malformed) {
        let list: PropertyListValue
        do { list = try PropertyListDecoder().decode(PropertyListValue.self, from: propertyList) } catch {
            throw .notAPropertyList
        }
        guard case .dictionary(let keys) = list else { throw .notADictionary }
        self.init()
        if let value = keys[Key.root.rawValue] {
            guard case .dictionary(let keys) = value else { throw .notADictionary }
            read(keys)
        } else if !keys.keys.contains(where: { $0.hasPrefix("CFBundle") }) {
            read(keys)
        }
    }

    // MARK: The dictionary

    private mutating func read(_ dictionary: [String: PropertyListValue]) {
        for (name, value) in dictionary.sorted(by: { $0.key < $1.key }) {
            switch Key(rawValue: name) {
            case .allowsArbitraryLoads: allowsArbitraryLoads = boolean(value, name) ?? false
            // "If you include this key with any value", which includes values of the wrong type.
            case .allowsArbitraryLoadsForMedia: allowsArbitraryLoadsForMedia = boolean(value, name) ?? false
            case .allowsArbitraryLoadsInWebContent: allowsArbitraryLoadsInWebContent = boolean(value, name) ?? false
            case .allowsLocalNetworking: allowsLocalNetworking = boolean(value, name) ?? false
            case .exceptionDomains: readExceptions(value)
            case .pinnedDomains: readPinnedDomains(value)
            default: warnings.append("\(name) is not a key of \(Key.root.rawValue): it has no effect")
            }
        }
        if allowsArbitraryLoads, let reason = keyIgnoringArbitraryLoads {
            warnings.append("\(Key.allowsArbitraryLoads.rawValue) is ignored because of \(reason.rawValue)")
        }
    }

    private mutating func boolean(_ value: PropertyListValue, _ path: String) -> Bool? {
        if case .boolean(let value) = value { return value }
        warnings.append("\(path) is not a Boolean: its default applies")
        return nil
    }

    // MARK: Exceptions

    private mutating func readExceptions(_ value: PropertyListValue) {
        guard case .dictionary(let domains) = value else {
            warnings.append("\(Key.exceptionDomains.rawValue) is not a dictionary: it has no effect")
            return
        }
        for (domain, value) in domains.sorted(by: { $0.key < $1.key }) {
            let path = "\(Key.exceptionDomains.rawValue)/\(domain)"
            guard case .dictionary(let keys) = value else {
                warnings.append("\(path) is not a dictionary: it has no effect")
                continue
            }
            let exception = readException(keys, path)
            if let name = Self.domainName(domain), exceptionDomains[name] != nil {
                warnings.append("\(path) repeats a domain: it replaces the earlier entry")
            }
            if !setException(exception, for: domain) {
                warnings.append("\(path) is neither a domain, an address nor a range of addresses: it has no effect")
            }
        }
    }

    private mutating func readException(_ keys: [String: PropertyListValue], _ path: String) -> Exception {
        var exception = Exception()
        for (name, value) in keys.sorted(by: { $0.key < $1.key }) {
            let path = "\(path)/\(name)"
            switch Key(rawValue: name) {
            case .includesSubdomains: exception.includesSubdomains = boolean(value, path) ?? false
            case .allowsInsecureLoads: exception.allowsInsecureLoads = boolean(value, path) ?? false
            case .requiresForwardSecrecy: exception.requiresForwardSecrecy = boolean(value, path) ?? true
            case .minimumVersion: exception.minimumVersion = version(value, path) ?? exception.minimumVersion
            case .requiresCertificateTransparency: warnings.append("\(path) is obsolete: it has no effect")
            default:
                let current = Key(oldName: name).map { "; use \($0.rawValue) instead" } ?? ""
                warnings.append("\(path) is not a key of an exception: it has no effect\(current)")
            }
        }
        return exception
    }

    private mutating func version(_ value: PropertyListValue, _ path: String) -> UInt16? {
        switch value {
        case .string("TLSv1.0"): return 0x0301
        case .string("TLSv1.1"): return 0x0302
        case .string("TLSv1.2"): return 0x0303
        case .string("TLSv1.3"): return 0x0304
        default:
            warnings.append("\(path) is not TLSv1.0, TLSv1.1, TLSv1.2 or TLSv1.3: its default, TLSv1.2, applies")
            return nil
        }
    }

    // MARK: Pins

    private mutating func readPinnedDomains(_ value: PropertyListValue) {
        guard case .dictionary(let domains) = value else {
            return fail("\(Key.pinnedDomains.rawValue) in \(Key.root.rawValue) is not a dictionary")
        }
        for (domain, value) in domains.sorted(by: { $0.key < $1.key }) {
            let path = "\(Key.pinnedDomains.rawValue)/\(domain)"
            var pins = Pins(includesSubdomains: true, fault: "it is not a dictionary")
            if case .dictionary(let keys) = value { pins = readPins(keys, path) }
            if let name = Self.domainName(domain), pinnedDomains[name] != nil {
                pins = Pins(includesSubdomains: true, fault: "it is listed twice")
            }
            if let fault = pins.fault { warnings.append("\(path): \(fault); all connections to the domain fail") }
            if !setPins(pins, for: domain) { fail("\(path) in \(Key.root.rawValue) is not a domain name") }
        }
    }

    private mutating func fail(_ fault: String) {
        warnings.append("\(fault): all connections fail")
        pinFault = pinFault ?? fault
    }

    private mutating func readPins(_ keys: [String: PropertyListValue], _ path: String) -> Pins {
        var leaf: [Data] = []
        var ca: [Data] = []
        var fault: String?
        var includesSubdomains = false
        for (name, value) in keys.sorted(by: { $0.key < $1.key }) {
            switch Key(rawValue: name) {
            case .includesSubdomains:
                if case .boolean(let value) = value {
                    includesSubdomains = value
                } else {
                    // An invalid value may have been meant to include the subdomains.
                    includesSubdomains = true
                    fault = "\(name) is not a Boolean"
                }
            case .pinnedLeafIdentities:
                if let pins = readIdentities(value, "\(path)/\(name)") { leaf = pins } else { fault = Self.fault(in: name) }
            case .pinnedCAIdentities:
                if let pins = readIdentities(value, "\(path)/\(name)") { ca = pins } else { fault = Self.fault(in: name) }
            default: warnings.append("\(path)/\(name) is not a key of a pinned domain: it has no effect")
            }
        }
        return Pins(includesSubdomains: includesSubdomains, leaf: leaf, ca: ca, fault: fault)
    }

    private static func fault(in name: String) -> String {
        "\(name) is not a list of dictionaries with a \(Key.keyHash.rawValue) of 32 bytes"
    }

    /// Returns the hashes in a list.
    ///
    /// Returns nil if the value is not a list, or if a hash is invalid.
    private mutating func readIdentities(_ value: PropertyListValue, _ path: String) -> [Data]? {
        guard case .array(let identities) = value, !identities.isEmpty else { return nil }
        var hashes: [Data] = []
        for identity in identities {
            guard case .dictionary(let keys) = identity, case .string(let text) = keys[Key.keyHash.rawValue],
                let hash = Data(base64Encoded: text), hash.count == 32
            else { return nil }
            for name in keys.keys.sorted() where name != Key.keyHash.rawValue {
                warnings.append("\(path)/\(name) is not a key of a pinned identity: it has no effect")
            }
            hashes.append(hash)
        }
        return hashes
    }
}

extension AppTransportSecurity {
    /// A value in the dictionary, whatever its type.
    enum PropertyListValue: Decodable, Hashable {
        case boolean(Bool)
        case string(String)
        case array([PropertyListValue])
        case dictionary([String: PropertyListValue])
        /// A number, a date, data, or a value that is nested too deeply to be meaningful.
        case other

        private static let greatestDepth = 8

        init(from decoder: any Decoder) throws {
            guard decoder.codingPath.count <= Self.greatestDepth else {
                self = .other
                return
            }
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode([String: PropertyListValue].self) {
                self = .dictionary(value)
            } else if let value = try? container.decode([PropertyListValue].self) {
                self = .array(value)
            } else if let value = try? container.decode(Bool.self) {
                self = .boolean(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else {
                self = .other
            }
        }
    }
}

extension AppTransportSecurity {
    /// The keys of the dictionary.
    enum Key: String, CaseIterable {
        /// The key in an Info.plist whose value is the dictionary.
        case root = "NSAppTransportSecurity"
        case allowsArbitraryLoads = "NSAllowsArbitraryLoads"
        case allowsArbitraryLoadsForMedia = "NSAllowsArbitraryLoadsForMedia"
        case allowsArbitraryLoadsInWebContent = "NSAllowsArbitraryLoadsInWebContent"
        case allowsLocalNetworking = "NSAllowsLocalNetworking"
        case exceptionDomains = "NSExceptionDomains"
        case pinnedDomains = "NSPinnedDomains"
        // Keys of an exception.
        case includesSubdomains = "NSIncludesSubdomains"
        case allowsInsecureLoads = "NSExceptionAllowsInsecureHTTPLoads"
        case minimumVersion = "NSExceptionMinimumTLSVersion"
        case requiresForwardSecrecy = "NSExceptionRequiresForwardSecrecy"
        case requiresCertificateTransparency = "NSRequiresCertificateTransparency"
        // Keys of a pinned domain.
        case pinnedLeafIdentities = "NSPinnedLeafIdentities"
        case pinnedCAIdentities = "NSPinnedCAIdentities"
        case keyHash = "SPKI-SHA256-BASE64"

        /// Returns the current key for a key with an old prefix, such as `NSTemporaryException…`.
        ///
        /// The old prefixes were used before the release of iOS 9, or for third-party servers.
        init?(oldName: String) {
            for prefix in ["NSTemporaryException", "NSThirdPartyException"] where oldName.hasPrefix(prefix) {
                self.init(rawValue: "NSException" + oldName.dropFirst(prefix.count))
                return
            }
            return nil
        }
    }
}
