//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import SwiftASN1
import X509

/// The most specific part of a name: the common name if the name has one, otherwise the organizational unit, the organization, or
/// the whole name.
struct SubjectSummary {
    let commonName: String?
    let text: String

    init(_ name: DistinguishedName) {
        var values: [ASN1ObjectIdentifier: String] = [:]
        for part in name {
            for attribute in part { values[attribute.type] = String(describing: attribute.value) }
        }
        commonName = values[.RDNAttributeType.commonName]
        text =
            commonName ?? values[.RDNAttributeType.organizationalUnitName] ?? values[.RDNAttributeType.organizationName]
            ?? name.description
    }
}
