// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A login from a `.netrc` has a user name, and is the same if it is the only entry of the file.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzNetrc(_ data: UnsafePointer<UInt8>?, _ size: Int) -> CInt {
    let text = String(decoding: UnsafeBufferPointer(start: data, count: size), as: UTF8.self)
    let netrc: Netrc
    do throws(Netrc.Malformed) {
        netrc = try Netrc(text)
    } catch {
        precondition(error.line >= 1 && error.line <= text.count + 1, "line \(error.line)")
        return 0
    }
    for host in ["a", "[::1]", "example.com"] {
        let named = netrc.login(at: host, takesDefault: false)
        let any = netrc.login(at: host, takesDefault: true)
        precondition(named == nil || any != nil, "a default hides a host")
        for login in [named, any].compactMap({ $0 }) {
            precondition(!login.user.isEmpty, "a login without a user")
            precondition(netrc.login(at: host, user: login.user, takesDefault: true) != nil, "a user cannot be found")
            let quoted = [login.user, login.password].map(quote)
            let again = try? Netrc("machine a login \(quoted[0]) password \(quoted[1])\n")
            precondition(again?.login(at: "a", takesDefault: false) == login, "\(login) changed")
        }
    }
    return 0
}

private func quote(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": quoted += "\\\(scalar)"
        case "\n": quoted += "\\n"
        case "\r": quoted += "\\r"
        case "\t": quoted += "\\t"
        default: quoted.unicodeScalars.append(scalar)
        }
    }
    return quoted + "\""
}
