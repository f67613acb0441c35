// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

/// Loads a URL from a server that must be trusted, and must have the public key of a certificate file.
@main
struct Pinning {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 3, let url = URL(string: arguments[1]),
            let delegate = KeyPinning(certificate: try Data(contentsOf: URL(fileURLWithPath: arguments[2])))
        else {
            print("usage: Pinning URL CERTIFICATE.der")
            exit(2)
        }
        let session = URLSession(configuration: .ephemeral, delegate: delegate, delegateQueue: nil)
        defer { session.finishTasksAndInvalidate() }
        do {
            let (data, _) = try await session.data(from: url)
            print(String(decoding: data, as: UTF8.self))
        } catch let error as URLError where error.code == .cancelled {
            print("the server has another key")
            exit(1)
        }
    }
}
