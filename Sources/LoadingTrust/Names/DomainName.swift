// SPDX-License-Identifier: Apache-2.0

/// A DNS name, or the base of a subtree of DNS names (RFC 5280, section 4.2.1.10).
struct DomainName {
    /// In lowercase, without the dot of the root.
    let bytes: [UInt8]
    /// Whether the name is in the "preferred name syntax" (section 4.2.1.6); underscores and a first label `*` are also valid.
    let isValid: Bool

    init(_ name: Substring.UTF8View) { self.init(Self.rootless(name), isValid: Self.isValid(name)) }

    /// Creates the base of a subtree; it may be empty, begin with a dot, or end with one.
    init(base: Substring.UTF8View) {
        let labels = Self.rootless(base)
        let rest = labels.first == UInt8(ascii: ".") ? labels.dropFirst() : labels
        self.init(labels, isValid: labels.isEmpty || (!rest.isEmpty && Self.isValid(rest)))
    }

    private init(_ name: Substring.UTF8View, isValid: Bool) {
        bytes = Self.lowercased(name)
        self.isValid = isValid
    }

    static func lowercased(_ name: Substring.UTF8View) -> [UInt8] {
        name.map { $0 &- UInt8(ascii: "A") < 26 ? $0 | 0x20 : $0 }
    }

    /// Returns a name without the trailing dot of the root.
    static func rootless(_ name: Substring.UTF8View) -> Substring.UTF8View {
        name.last == UInt8(ascii: ".") ? name.dropLast() : name
    }

    /// Returns whether a name is this one or has more labels; more labels are required if this name begins with a dot.
    ///
    /// An invalid name is never inside: a permission does not extend to it, and an exclusion of what it contains does.
    func relation(to name: DomainName) -> NameSubtree.Relation {
        guard isValid else { return .undecided }
        return has(name) ? (name.isValid ? .inside : .undecided) : .outside
    }

    private func has(_ name: DomainName) -> Bool {
        if bytes.isEmpty { return true }
        let dot = UInt8(ascii: ".")
        let length = name.bytes.count - bytes.count
        guard bytes.first == dot ? length > 0 : length == 0 || (length > 0 && name.bytes[length - 1] == dot) else { return false }
        return name.bytes[length...] == bytes[...]
    }

    /// Returns whether the host of a URI or mailbox is this one; only if this name begins with a dot, other labels may precede it.
    func relation(toHost name: DomainName) -> NameSubtree.Relation {
        guard isValid, name.isValid else { return .undecided }
        if bytes.isEmpty || bytes.first == UInt8(ascii: ".") { return relation(to: name) }
        return bytes == name.bytes ? .inside : .outside
    }

    private static func isValid(_ name: Substring.UTF8View) -> Bool {
        if name.isEmpty { return true }
        guard name.count <= 253 else { return false }
        var labels = name.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)[...]
        if labels.first?.elementsEqual("*".utf8) == true {
            // At least two labels follow a wildcard, so that it cannot stand for all hosts of a top-level domain.
            labels.removeFirst()
            guard labels.count >= 2 else { return false }
        }
        let hyphen = UInt8(ascii: "-")
        return labels.allSatisfy { label in
            1...63 ~= label.count && label.first != hyphen && label.last != hyphen && label.allSatisfy(isNameCharacter)
        } && labels.last?.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } == false
    }

    static func isNameCharacter(_ byte: UInt8) -> Bool {
        switch byte | 0x20 {
        case UInt8(ascii: "a")...UInt8(ascii: "z"): true
        default: UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_")
        }
    }
}
