// SPDX-License-Identifier: Apache-2.0

import Foundation
import URLLoading

// Evaluators of server trust, as in a well-known HTTP library for Apple's platforms: they must compile unchanged. The calls to the
// Security framework are identical; only the library's own errors are shortened.

enum PinningError: Error {
    case noCertificatesFound
    case noPublicKeysFound
    case policyApplicationFailed(trust: SecTrust, policy: SecPolicy, status: OSStatus)
    case settingAnchorCertificatesFailed(status: OSStatus, certificates: [SecCertificate])
    case revocationPolicyCreationFailed
    case trustEvaluationFailed(error: (any Error)?)
    case pinningFailed(host: String, trust: SecTrust)
    case defaultEvaluationFailed(status: OSStatus, result: SecTrustResultType)
}

protocol ServerTrustEvaluating: Sendable {
    func evaluate(_ trust: SecTrust, forHost host: String) throws
}

struct DefaultTrustEvaluator: ServerTrustEvaluating {
    var validateHost = true

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
        if validateHost { try trust.pinning.performValidation(forHost: host) }
        try trust.pinning.performDefaultValidation(forHost: host)
    }
}

final class RevocationTrustEvaluator: ServerTrustEvaluating {
    struct Options: OptionSet, Sendable {
        static let crl = Options(rawValue: kSecRevocationCRLMethod)
        static let networkAccessDisabled = Options(rawValue: kSecRevocationNetworkAccessDisabled)
        static let ocsp = Options(rawValue: kSecRevocationOCSPMethod)
        static let preferCRL = Options(rawValue: kSecRevocationPreferCRL)
        static let requirePositiveResponse = Options(rawValue: kSecRevocationRequirePositiveResponse)
        static let any = Options(rawValue: kSecRevocationUseAnyAvailableMethod)

        let rawValue: CFOptionFlags

        init(rawValue: CFOptionFlags) { self.rawValue = rawValue }
    }

    private let options: Options

    init(options: Options = .any) { self.options = options }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
        try trust.pinning.performDefaultValidation(forHost: host)
        try trust.pinning.performValidation(forHost: host)
        if #available(iOS 12, macOS 10.14, tvOS 12, watchOS 5, *) {
            try trust.pinning.evaluate(afterApplying: SecPolicy.pinning.revocation(options: options))
        } else {
            try trust.pinning.validate(policy: SecPolicy.pinning.revocation(options: options)) { status, result in
                PinningError.defaultEvaluationFailed(status: status, result: result)
            }
        }
    }
}

final class PinnedCertificatesTrustEvaluator: ServerTrustEvaluating {
    private let certificates: [SecCertificate]
    private let acceptSelfSignedCertificates: Bool
    private let performDefaultValidation: Bool
    private let validateHost: Bool

    init(
        certificates: [SecCertificate], acceptSelfSignedCertificates: Bool = false, performDefaultValidation: Bool = true,
        validateHost: Bool = true
    ) {
        self.certificates = certificates
        self.acceptSelfSignedCertificates = acceptSelfSignedCertificates
        self.performDefaultValidation = performDefaultValidation
        self.validateHost = validateHost
    }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
        guard !certificates.isEmpty else { throw PinningError.noCertificatesFound }
        if acceptSelfSignedCertificates { try trust.pinning.setAnchorCertificates(certificates) }
        if performDefaultValidation { try trust.pinning.performDefaultValidation(forHost: host) }
        if validateHost { try trust.pinning.performValidation(forHost: host) }
        let serverCertificatesData = Set(trust.pinning.certificateData)
        let pinnedCertificatesData = Set(certificates.pinning.data)
        let pinnedCertificatesInServerData = !serverCertificatesData.isDisjoint(with: pinnedCertificatesData)
        if !pinnedCertificatesInServerData { throw PinningError.pinningFailed(host: host, trust: trust) }
    }
}

final class PublicKeysTrustEvaluator: ServerTrustEvaluating {
    private let keys: [SecKey]
    private let performDefaultValidation: Bool
    private let validateHost: Bool

    init(keys: [SecKey], performDefaultValidation: Bool = true, validateHost: Bool = true) {
        self.keys = keys
        self.performDefaultValidation = performDefaultValidation
        self.validateHost = validateHost
    }

    func evaluate(_ trust: SecTrust, forHost host: String) throws {
        guard !keys.isEmpty else { throw PinningError.noPublicKeysFound }
        if performDefaultValidation { try trust.pinning.performDefaultValidation(forHost: host) }
        if validateHost { try trust.pinning.performValidation(forHost: host) }
        let pinnedKeysInServerKeys: Bool = {
            for serverPublicKey in trust.pinning.publicKeys {
                if keys.contains(serverPublicKey) { return true }
            }
            return false
        }()
        if !pinnedKeysInServerKeys { throw PinningError.pinningFailed(host: host, trust: trust) }
    }
}

struct PinningExtension<ExtendedType> {
    let type: ExtendedType

    init(_ type: ExtendedType) { self.type = type }
}

protocol PinningExtended {
    associatedtype ExtendedType
    static var pinning: PinningExtension<ExtendedType>.Type { get }
    var pinning: PinningExtension<ExtendedType> { get }
}

extension PinningExtended {
    static var pinning: PinningExtension<Self>.Type { PinningExtension<Self>.self }
    var pinning: PinningExtension<Self> { PinningExtension(self) }
}

extension Bundle: PinningExtended {}
extension PinningExtension where ExtendedType: Bundle {
    var certificates: [SecCertificate] {
        type.paths(forResourcesOfType: "cer", inDirectory: nil).compactMap { path in
            guard
                let certificateData = try? Data(contentsOf: URL(fileURLWithPath: path)) as CFData,
                let certificate = SecCertificateCreateWithData(nil, certificateData)
            else { return nil }
            return certificate
        }
    }
}

extension SecTrust: PinningExtended {}
extension PinningExtension where ExtendedType == SecTrust {
    func evaluate(afterApplying policy: SecPolicy) throws {
        try apply(policy: policy).pinning.evaluate()
    }

    func validate(
        policy: SecPolicy, errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error
    ) throws {
        try apply(policy: policy).pinning.validate(errorProducer: errorProducer)
    }

    func apply(policy: SecPolicy) throws -> SecTrust {
        let status = SecTrustSetPolicies(type, policy)
        guard status.pinning.isSuccess else {
            throw PinningError.policyApplicationFailed(trust: type, policy: policy, status: status)
        }
        return type
    }

    func evaluate() throws {
        var error: CFError?
        let evaluationSucceeded = SecTrustEvaluateWithError(type, &error)
        if !evaluationSucceeded { throw PinningError.trustEvaluationFailed(error: error) }
    }

    func validate(errorProducer: (_ status: OSStatus, _ result: SecTrustResultType) -> any Error) throws {
        var result = SecTrustResultType.invalid
        let status = SecTrustEvaluate(type, &result)
        guard status.pinning.isSuccess && result.pinning.isSuccess else { throw errorProducer(status, result) }
    }

    func setAnchorCertificates(_ certificates: [SecCertificate]) throws {
        let status = SecTrustSetAnchorCertificates(type, certificates as CFArray)
        guard status.pinning.isSuccess else {
            throw PinningError.settingAnchorCertificatesFailed(status: status, certificates: certificates)
        }
        let onlyStatus = SecTrustSetAnchorCertificatesOnly(type, true)
        guard onlyStatus.pinning.isSuccess else {
            throw PinningError.settingAnchorCertificatesFailed(status: onlyStatus, certificates: certificates)
        }
    }

    var publicKeys: [SecKey] { certificates.pinning.publicKeys }

    var certificateData: [Data] { certificates.pinning.data }

    var certificates: [SecCertificate] {
        guard #available(iOS 15, macOS 12, tvOS 15, watchOS 8, visionOS 1, *) else {
            return (0..<SecTrustGetCertificateCount(type)).compactMap { index in
                SecTrustGetCertificateAtIndex(type, index)
            }
        }
        return (SecTrustCopyCertificateChain(type) as? [SecCertificate]) ?? []
    }

    func performDefaultValidation(forHost host: String) throws {
        try evaluate(afterApplying: SecPolicy.pinning.default)
    }

    func performValidation(forHost host: String) throws {
        try evaluate(afterApplying: SecPolicy.pinning.hostname(host))
    }
}

extension SecPolicy: PinningExtended {}
extension PinningExtension where ExtendedType == SecPolicy {
    static let `default` = SecPolicyCreateSSL(true, nil)

    static func hostname(_ hostname: String) -> SecPolicy { SecPolicyCreateSSL(true, hostname as CFString) }

    static func revocation(options: RevocationTrustEvaluator.Options) throws -> SecPolicy {
        guard let policy = SecPolicyCreateRevocation(options.rawValue) else {
            throw PinningError.revocationPolicyCreationFailed
        }
        return policy
    }
}

extension Array: PinningExtended {}
extension PinningExtension where ExtendedType == [SecCertificate] {
    var data: [Data] { type.map { SecCertificateCopyData($0) as Data } }

    var publicKeys: [SecKey] { type.compactMap(\.pinning.publicKey) }
}

extension SecCertificate: PinningExtended {}
extension PinningExtension where ExtendedType == SecCertificate {
    var publicKey: SecKey? {
        let policy = SecPolicyCreateBasicX509()
        var trust: SecTrust?
        let trustCreationStatus = SecTrustCreateWithCertificates(type, policy, &trust)
        guard let createdTrust = trust, trustCreationStatus == errSecSuccess else { return nil }
        guard #available(iOS 14, macOS 11, tvOS 14, watchOS 7, visionOS 1, *) else {
            return SecTrustCopyPublicKey(createdTrust)
        }
        return SecTrustCopyKey(createdTrust)
    }
}

extension OSStatus: PinningExtended {}
extension PinningExtension where ExtendedType == OSStatus {
    var isSuccess: Bool { type == errSecSuccess }
}

extension SecTrustResultType: PinningExtended {}
extension PinningExtension where ExtendedType == SecTrustResultType {
    var isSuccess: Bool { type == .unspecified || type == .proceed }
}
