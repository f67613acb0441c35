// SPDX-License-Identifier: Apache-2.0

/// A password in the two encodings that ciphers use.
struct PasswordBytes {
    /// UTF-8, for PKCS #5.
    let utf8: [UInt8]
    /// Big-endian UTF-16 with a terminating zero, for PKCS #12 (RFC 7292, appendix B.1).
    let utf16: [UInt8]

    /// A missing password as some programs encode it: without the terminating zero.
    static let none = PasswordBytes(utf8: [], utf16: [])

    init(_ password: String) {
        utf8 = Array(password.utf8)
        utf16 = password.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] } + [0, 0]
    }

    private init(utf8: [UInt8], utf16: [UInt8]) {
        self.utf8 = utf8
        self.utf16 = utf16
    }
}
