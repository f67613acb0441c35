// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A GSSAPI acceptor, in Python with MIT's library, that checks the channel binding, unlike the other servers for tests.
///
/// The keys and the realm come from this process's environment: KRB5_KTNAME, KRB5_CONFIG.
package enum GSSAPIAcceptor {
    private static let script = """
        import ctypes, sys
        gss = ctypes.CDLL("libgssapi_krb5.so.2")
        class Buffer(ctypes.Structure):
            _fields_ = [("length", ctypes.c_size_t), ("value", ctypes.c_char_p)]
        class Bindings(ctypes.Structure):
            _fields_ = [("type1", ctypes.c_uint32), ("address1", Buffer), ("type2", ctypes.c_uint32),
                        ("address2", Buffer), ("data", Buffer)]
        token, data = (bytes.fromhex(text) for text in sys.argv[1:])
        minor, context, output = ctypes.c_uint32(), ctypes.c_void_p(), Buffer()
        bindings = Bindings(data=Buffer(len(data), data))
        major = gss.gss_accept_sec_context(
            ctypes.byref(minor), ctypes.byref(context), None, ctypes.byref(Buffer(len(token), token)),
            ctypes.byref(bindings), None, None, ctypes.byref(output), None, None, None)
        print(major >> 16 & 0xFF)

        """

    /// 0 if the token is accepted, otherwise GSSAPI's routine error (RFC 2744, section 3.9.1).
    package static func error(of token: [UInt8], binding: [UInt8]) throws -> String {
        let directory = try TemporaryDirectory()
        let file = try directory.write(script.utf8, to: "acceptor.py")
        let hexadecimal = [token, binding].map { bytes in
            bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        }
        let variables = ProcessInfo.processInfo.environment.filter { $0.key.hasPrefix("KRB5") }
        let python = try ServerProcess.program("python3", package: "python3")
        return try ServerProcess.run(
            ServerProcess.Command(
                [python, file.path] + hexadecimal,
                environment: variables,
                output: directory.file("output")
            )
        ).trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
