// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire

/// For any fields of a server and an app, lifetimes and ages are valid numbers, and a response is not used without validation if
/// the request or the response forbids it.
///
/// The input consists of lines. The first four bytes determine the policy, the status and the times. The fields of the stored
/// response follow, then, each after an empty line, the fields of a request and of the response to that request.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzCacheControl(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let bytes = Array(UnsafeBufferPointer(start: data, count: size))
    guard bytes.count >= 4 else { return 0 }
    let sections = split(bytes[4...])
    let policies = CacheDecision.Policy.allCases
    let policy = policies[Int(bytes[0]) % policies.count]
    let status = [200, 206, 203, 204, 299, 301, 404][Int(bytes[1]) % 7]
    let start: Double = 800_000_000
    let stored = StoredResponse(
        url: "https://a.example/",
        requestHeaders: bytes[1] & 0x80 == 0 ? sections[1] : sections[2],
        status: status,
        reason: "",
        headers: sections[0],
        requestTime: start - Double(bytes[2] & 7),
        responseTime: start,
        bodyLength: Int64(bytes[2] >> 3)
    )
    let now = start + Double(Int8(bitPattern: bytes[3])) * 1000
    check(stored, now)
    for method in ["GET", "HEAD"] { check(stored, method, sections[1], policy, now) }
    check(updatesOf: stored, sections[1], sections[2], now)
    return 0
}

private func check(_ stored: StoredResponse, _ now: Double) {
    let lifetime = Freshness.lifetime(stored)
    let age = Freshness.currentAge(stored, now: now)
    precondition(lifetime.isFinite && lifetime >= 0 && lifetime <= 2_147_483_648, "lifetime \(lifetime)")
    precondition(age.isFinite && age >= abs(now - stored.responseTime), "age \(age)")
    let control = CacheControl(stored.headers)
    for seconds in [
        control.maxAge, control.minFresh, control.maxStale, control.sharedMaxAge, control.staleIfError,
        control.staleWhileRevalidate,
    ] { precondition((0...CacheControl.maximumSeconds).contains(seconds ?? 0), "\(seconds ?? 0) seconds") }
    precondition(!control.hasInvalidFreshness || lifetime == 0, "invalid, and fresh for \(lifetime)")
}

private func check(
    _ stored: StoredResponse,
    _ method: String,
    _ request: HeaderBlock,
    _ policy: CacheDecision.Policy,
    _ now: Double
) {
    let decision = CacheDecision.decide(method: method, requestHeaders: request, policy: policy, stored: stored, now: now)
    let control = CacheControl(stored.headers)
    let wishes = CacheControl(request: request)
    let isUnasked: Bool
    switch decision {
    case .use, .useAndRevalidate: isUnasked = true
    case .revalidate(let fields), .fetch(let fields):
        isUnasked = false
        for field in fields { precondition(ASCII.isToken(field.0) && ASCII.isFieldValue(field.1), "unsendable \(field)") }
        precondition(policy != .returnCacheDontLoad, "sent although the policy forbids loading")
        precondition(policy != .useProtocol || !wishes.onlyIfCached, "sent although only-if-cached")
    case .fail:
        isUnasked = false
        precondition(policy == .returnCacheDontLoad || wishes.onlyIfCached, "failed without a reason")
    }
    guard isUnasked else { return }
    precondition(!wishes.noCache && !wishes.noStore, "used although the request forbids it")
    precondition(!control.noStore || control.mustUnderstand, "used despite no-store")
    precondition(CacheKey.matches(stored, requestHeaders: request), "used despite Vary")
    precondition(policy != .reloadIgnoringLocal && policy != .reloadIgnoringLocalAndRemote, "used although the policy forbids it")
    precondition(
        stored.isComplete || method == "GET" && request.contains("Range"), "an incomplete response used as a complete one")
    guard policy == .useProtocol else { return }
    precondition(!control.noCache, "used despite no-cache")
    let isFresh = Freshness.isFresh(stored, now: now)
    precondition(isFresh || !control.mustRevalidate, "stale despite must-revalidate")
    precondition(isFresh || wishes.maxStale != nil || control.staleWhileRevalidate != nil, "stale without permission")
    if let maxAge = wishes.maxAge, wishes.maxStale == nil {
        precondition(Freshness.currentAge(stored, now: now) <= Double(maxAge), "older than the request permits")
    }
}

private func check(updatesOf stored: StoredResponse, _ request: HeaderBlock, _ answer: HeaderBlock, _ now: Double) {
    if let merged = Revalidation.merged(stored, with304: answer, requestHeaders: request, requestTime: now, responseTime: now) {
        precondition(merged.headers.first("Content-Length") == stored.headers.first("Content-Length"), "length of a 304")
        precondition(merged.headers.first("Content-Encoding") == stored.headers.first("Content-Encoding"), "coding of a 304")
        precondition(merged.bodyLength == stored.bodyLength && merged.status == stored.status, "a 304 changed the content")
        check(merged, now)
        let again = Revalidation.merged(merged, with304: answer, requestHeaders: request, requestTime: now, responseTime: now)
        precondition(
            again.map { Set($0.headers.fields.map(\.value)) } == Set(merged.headers.fields.map(\.value)),
            "the second merge changed fields")
    }
    _ = Revalidation.updatedByHead(
        stored, status: 200, headers: answer, credential: nil, requestTime: now, responseTime: now)
    _ = Revalidation.mayServeStaleOnError(stored, requestHeaders: request, status: nil, now: now)
    if let url = URL(string: "https://a.example/x") {
        for key in Revalidation.invalidated(method: "POST", url: url, status: 201, headers: answer) {
            precondition(
                key.hasPrefix("https://a.example/") || key.hasSuffix("@a.example/") || key.contains("@a.example/"), "\(key)")
        }
    }
    if case .partial(let body, _)? = PartialContent.range(requestHeaders: request, stored: stored, now: now) {
        precondition(!body.isEmpty && body.lowerBound >= 0 && body.upperBound <= stored.bodyLength, "beyond the body: \(body)")
    }
    var other = StoredResponse(
        url: stored.url,
        requestHeaders: request,
        status: 206,
        reason: "",
        headers: answer,
        requestTime: now,
        responseTime: now
    )
    other.bodyLength = other.storedRange.map { Int64($0.count) } ?? 0
    for (a, b) in [(stored, other), (other, stored)] {
        guard let found = PartialContent.combined(a, b) else { continue }
        let lengths = [PartialContent.Combination.Source.first: a.bodyLength, .second: b.bodyLength]
        var total: Int64 = 0
        for piece in found.pieces {
            precondition(piece.range.lowerBound >= 0 && piece.range.upperBound <= lengths[piece.source] ?? 0, "beyond a part")
            total += Int64(piece.range.count)
        }
        precondition(total == found.response.bodyLength, "pieces of \(total), not \(found.response.bodyLength)")
    }
}

/// Splits the input into three sections of field lines, which are separated by empty lines.
private func split(_ bytes: ArraySlice<UInt8>) -> [HeaderBlock] {
    var blocks: [HeaderBlock] = [HeaderBlock()]
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
        guard !line.isEmpty else {
            if blocks.count < 3 { blocks.append(HeaderBlock()) }
            continue
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), line[..<colon].allSatisfy(ASCII.isTokenCharacter),
            colon > line.startIndex
        else { continue }
        let value = ASCII.trimmed(line[(colon + 1)...]).filter { $0 != 0 && $0 != 0x0D }
        line[..<colon].withUnsafeBytes { name in value.withUnsafeBytes { blocks[blocks.count - 1].append(name: name, value: $0) }
        }
    }
    while blocks.count < 3 { blocks.append(HeaderBlock()) }
    return blocks
}
