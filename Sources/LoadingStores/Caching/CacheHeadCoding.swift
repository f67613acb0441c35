// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire

/// Encodes and decodes the head of a cache file.
enum CacheHeadCoding {
    /// The length of a SHA-256 digest.
    private static let digestLength = 32

    static func encoded(_ head: CacheEntryFile.Head) -> [UInt8] {
        let response = head.response
        var writer = RecordWriter()
        writer.reserve(512 + response.headers.bytes.count + response.varyFields.bytes.count + (head.userInfo?.count ?? 0))
        for text in [head.key, response.url, response.method, response.reason] { writer.write(text) }
        writer.write(Int64(response.status))
        writer.write(response.headers)
        writer.write(response.varyFields)
        writer.write(response.requestTime)
        writer.write(response.responseTime)
        writer.write(response.storedRange.map { [$0.lowerBound, $0.upperBound] } ?? [])
        writer.write(response.completeLength.map { [$0] } ?? [])
        writer.write(response.credential)
        let security = response.security
        writer.write(security.map { [Int64($0.version), $0.hasForwardSecrecy ? 1 : 0, $0.hasStrongKeys ? 1 : 0] } ?? [])
        writer.write(security?.keys.flatMap { Array($0) } ?? [])
        writer.write(head.userInfo == nil ? [] : [0] as [Int64])
        writer.write(head.userInfo ?? [])
        return writer.bytes
    }

    static func decoded(_ bytes: UnsafeRawBufferPointer, bodyLength: Int64) -> CacheEntryFile.Head? {
        var reader = RecordReader(bytes, from: 0)
        guard let key = reader.validText(), let url = reader.validText(), let method = reader.validText(),
            let reason = reader.validText(),
            let status = reader.number(Int64.self).flatMap({ Int(exactly: $0) }),
            let headers = reader.block(), let varyFields = reader.block(),
            let requestTime = reader.double(), requestTime.isFinite, let responseTime = reader.double(), responseTime.isFinite,
            let range = reader.numbers(), let completeLength = reader.numbers(),
            let credential = reader.optionalText(), let security = security(&reader),
            let hasUserInfo = reader.numbers(), let userInfo = reader.part(), reader.isAtEnd,
            status == 0 || (100...999).contains(status),
            range.isEmpty || range.count == 2 && 0 <= range[0] && range[0] <= range[1],
            completeLength.count <= 1, completeLength.allSatisfy({ $0 >= 0 })
        else { return nil }
        let response = StoredResponse(
            url: url, method: method, status: status, reason: reason, headers: headers, varyFields: varyFields,
            requestTime: requestTime, responseTime: responseTime, bodyLength: bodyLength,
            storedRange: range.isEmpty ? nil : range[0]..<range[1], completeLength: completeLength.first, credential: credential,
            security: security)
        return CacheEntryFile.Head(key: key, response: response, userInfo: hasUserInfo.isEmpty ? nil : [UInt8](userInfo))
    }

    private static func security(_ reader: inout RecordReader) -> ConnectionSecurity?? {
        guard let numbers = reader.numbers(), let digests = reader.part() else { return nil }
        if numbers.isEmpty { return .some(nil) }
        guard numbers.count == 3, let version = UInt16(exactly: numbers[0]), digests.count % digestLength == 0 else { return nil }
        let keys = stride(from: 0, to: digests.count, by: digestLength).map { Data(digests[$0..<$0 + digestLength]) }
        return ConnectionSecurity(
            version: version, hasForwardSecrecy: numbers[1] == 1, hasStrongKeys: numbers[2] == 1, keys: keys)
    }
}
