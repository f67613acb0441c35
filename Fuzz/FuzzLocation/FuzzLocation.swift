// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import HTTPRules
import HTTPWire

/// For any `Location`, the next request either has a scheme that the library does not load, or it uses HTTP, is sent to the host
/// of its URL, and contains nothing injected.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLocation(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let location = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    for base in ["http://u:p@h:8080/a/b?c#d", "https://[::1]"] {
        guard let url = URL(string: base), let origin = Origin(url) else { preconditionFailure("the base is not a URL") }
        let decision = RedirectPolicy.decide(status: 302, location: location, method: "POST", url: url, redirectsSoFar: 0)
        guard case .follow(let proposal) = decision else { continue }
        guard let target = try? RequestTarget(proposal.url) else {
            let scheme = proposal.url.scheme?.lowercased()
            precondition(
                !["http", "https", "file", "data", nil].contains(scheme), "a redirect to a forbidden scheme: \(proposal.url)")
            precondition(proposal.crossesOrigin, "\(proposal.url) does not count as another origin")
            continue
        }
        precondition(target.path.utf8.first == UInt8(ascii: "/"), "path \(target.path)")
        precondition((target.path + target.hostHeader).utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "forbidden byte in \(target)")
        precondition(proposal.crossesOrigin == (target.origin != origin), "origin of \(proposal.url)")
        precondition(
            proposal.crossesOrigin == false || target.user == nil || location.contains("@"), "the base's userinfo was sent")
        if let host = proposal.url.host()?.lowercased() {
            precondition(target.origin.host == host.replacing("%25", with: "%"), "\(target.origin.host) is not \(host)")
        }
        // The target does not change if it is parsed again.
        let again = RedirectPolicy.decide(
            status: 302,
            location: proposal.url.absoluteString,
            method: "GET",
            url: url,
            redirectsSoFar: 0
        )
        guard case .follow(let second) = again else { preconditionFailure("\(proposal.url) leads nowhere") }
        precondition(Origin(second.url) == target.origin, "\(second.url) is not \(proposal.url)")
    }
    return 0
}
