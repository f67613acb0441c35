// SPDX-License-Identifier: Apache-2.0

public import Foundation
internal import LoadingTrust

/// The rules for evaluating a certificate chain.
///
/// Sendable because it is immutable.
public final class SecPolicy: NSObject, Sendable {
    enum Rule: Hashable, Sendable {
        case basic
        case tls(isServer: Bool, host: String?)
        /// Ignored: revocation is not checked.
        case revocation(UInt)
    }

    let rule: Rule

    init(_ rule: Rule) {
        self.rule = rule
        super.init()
    }

    /// Whether the other object is an equal policy.
    ///
    /// - Returns: Whether they are equal.
    public override func isEqual(_ object: Any?) -> Bool { (object as? SecPolicy)?.rule == rule }

    /// The hash of the rule.
    public override var hash: Int { rule.hashValue }

    /// The rule.
    public override var description: String {
        switch rule {
        case .basic: "<SecPolicy: basic X.509>"
        case .tls(let isServer, let host): "<SecPolicy: TLS \(isServer ? "server" : "client") \(host ?? "of any name")>"
        case .revocation: "<SecPolicy: revocation (not checked)>"
        }
    }
}

/// Creates a policy that evaluates only the chain: signatures, dates, constraints (RFC 5280).
///
/// - Returns: The policy.
@discardableResult
public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(.basic) }

/// Creates a policy for TLS.
///
/// - Parameters:
///   - server: True to evaluate a server's certificate, false for a client's.
///   - hostname: The host name or IP address that the certificate must be valid for; nil for any.
/// - Returns: The policy.
@discardableResult
public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
    SecPolicy(.tls(isServer: server, host: hostname.map { $0 as String }))
}

/// Creates a policy that requests a revocation check.
///
/// On Linux, revocation is never checked: the chain is evaluated as if no certificate were revoked, even with
/// `kSecRevocationRequirePositiveResponse`.
///
/// - Returns: The policy.
@discardableResult
public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
    revocationFlags == 0 ? nil : SecPolicy(.revocation(revocationFlags))
}

/// Check with OCSP (RFC 6960).
public let kSecRevocationOCSPMethod: CFOptionFlags = 1 << 0
/// Check with a CRL (RFC 5280, section 5).
public let kSecRevocationCRLMethod: CFOptionFlags = 1 << 1
/// Prefer the CRL.
public let kSecRevocationPreferCRL: CFOptionFlags = 1 << 2
/// Fail if there is no revocation information.
public let kSecRevocationRequirePositiveResponse: CFOptionFlags = 1 << 3
/// Do not use the network.
public let kSecRevocationNetworkAccessDisabled: CFOptionFlags = 1 << 4
/// Check with either method.
public let kSecRevocationUseAnyAvailableMethod: CFOptionFlags = kSecRevocationOCSPMethod | kSecRevocationCRLMethod
