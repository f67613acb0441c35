// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Encodes requests into archives and decodes them, for the coding of `NSURLRequest`.
///
/// The body stream and properties set with `URLProtocol.setProperty(_:forKey:in:)` are not archived.
enum RequestArchive {
    static func encode(_ request: URLRequest, _ coder: NSCoder) {
        coder.encode(request.url as NSURL?, forKey: "url")
        coder.encode(request.mainDocumentURL as NSURL?, forKey: "mainDocumentURL")
        coder.encode(request.httpMethod as NSString?, forKey: "method")
        coder.encode(request.httpBody as NSData?, forKey: "body")
        coder.encode(Int(request.cachePolicy.rawValue), forKey: "cachePolicy")
        if request.hasExplicitTimeout { coder.encode(request.timeoutInterval, forKey: "timeout") }
        coder.encode(Int(request.networkServiceType.rawValue), forKey: "networkServiceType")
        coder.encode(request.httpShouldHandleCookies, forKey: "handlesCookies")
        coder.encode(Int(request.storage.archivedOptions), forKey: "options")
        coder.encode(request.cookiePartitionIdentifier as NSString?, forKey: "cookiePartition")
        if let fields = request.allHTTPHeaderFields {
            let names = fields.keys.sorted()
            coder.encode(names as NSArray, forKey: "fieldNames")
            coder.encode(names.map { fields[$0] ?? "" } as NSArray, forKey: "fieldValues")
        }
    }

    static func decode(_ coder: NSCoder) -> URLRequest? {
        var request = URLRequest()
        request.url = coder.decodeObject(of: NSURL.self, forKey: "url") as URL?
        request.mainDocumentURL = coder.decodeObject(of: NSURL.self, forKey: "mainDocumentURL") as URL?
        request.httpMethod = coder.decodeString(forKey: "method")
        request.httpBody = coder.decodeObject(of: NSData.self, forKey: "body") as Data?
        request.cachePolicy =
            URLRequest.CachePolicy(rawValue: UInt(clamping: coder.decodeInteger(forKey: "cachePolicy")))
            ?? .useProtocolCachePolicy
        if coder.containsValue(forKey: "timeout") { request.timeoutInterval = coder.decodeDouble(forKey: "timeout") }
        request.networkServiceType =
            URLRequest.NetworkServiceType(rawValue: UInt(clamping: coder.decodeInteger(forKey: "networkServiceType"))) ?? .default
        request.httpShouldHandleCookies = coder.decodeBool(forKey: "handlesCookies")
        request.setOptions(archived: UInt16(clamping: coder.decodeInteger(forKey: "options")))
        request.cookiePartitionIdentifier = coder.decodeString(forKey: "cookiePartition")
        let names = coder.decodeStrings(forKey: "fieldNames")
        let values = coder.decodeStrings(forKey: "fieldValues")
        if let names, let values, names.count == values.count {
            request.allHTTPHeaderFields = Dictionary(zip(names, values)) { first, _ in first }
        }
        return request
    }
}

extension NSCoder {
    /// Decodes an array of strings; nil if the archive has no such array.
    func decodeStrings(forKey key: String) -> [String]? {
        guard containsValue(forKey: key) else { return nil }
        return (decodeObject(of: [NSArray.self, NSString.self], forKey: key) as? NSArray)?.compactMap { $0 as? String }
    }

    func decodeString(forKey key: String) -> String? { decodeObject(of: NSString.self, forKey: key) as String? }
}
