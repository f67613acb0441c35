//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// A field name that the rules ask for: known by a number, so that looking for it costs a test and no comparison of text.
package struct FieldName: Sendable, Hashable {
    /// The row in ``rows``.
    @usableFromInline
    var number: UInt8

    @inlinable
    init(_ number: UInt8) { self.number = number }

    /// All names that nothing is known of.
    @inlinable
    package static var other: FieldName { FieldName(63) }

    /// The bit of the name in a set of names; of those that are not known none.
    @inlinable
    var bit: UInt64 { (1 &<< UInt64(number)) & (1 << 63 - 1) }

    @inlinable package static var accept: FieldName { FieldName(0) }
    @inlinable package static var acceptEncoding: FieldName { FieldName(1) }
    @inlinable package static var acceptLanguage: FieldName { FieldName(2) }
    @inlinable package static var acceptRanges: FieldName { FieldName(3) }
    @inlinable package static var age: FieldName { FieldName(4) }
    @inlinable package static var altSvc: FieldName { FieldName(5) }
    @inlinable package static var authorization: FieldName { FieldName(6) }
    @inlinable package static var cacheControl: FieldName { FieldName(7) }
    @inlinable package static var connection: FieldName { FieldName(8) }
    @inlinable package static var contentDisposition: FieldName { FieldName(9) }
    @inlinable package static var contentEncoding: FieldName { FieldName(10) }
    @inlinable package static var contentLength: FieldName { FieldName(11) }
    @inlinable package static var contentLocation: FieldName { FieldName(12) }
    @inlinable package static var contentRange: FieldName { FieldName(13) }
    @inlinable package static var contentType: FieldName { FieldName(14) }
    @inlinable package static var cookie: FieldName { FieldName(15) }
    @inlinable package static var date: FieldName { FieldName(16) }
    @inlinable package static var etag: FieldName { FieldName(17) }
    @inlinable package static var expect: FieldName { FieldName(18) }
    @inlinable package static var expires: FieldName { FieldName(19) }
    @inlinable package static var host: FieldName { FieldName(20) }
    @inlinable package static var ifMatch: FieldName { FieldName(21) }
    @inlinable package static var ifModifiedSince: FieldName { FieldName(22) }
    @inlinable package static var ifNoneMatch: FieldName { FieldName(23) }
    @inlinable package static var ifRange: FieldName { FieldName(24) }
    @inlinable package static var ifUnmodifiedSince: FieldName { FieldName(25) }
    @inlinable package static var keepAlive: FieldName { FieldName(26) }
    @inlinable package static var lastModified: FieldName { FieldName(27) }
    @inlinable package static var location: FieldName { FieldName(28) }
    @inlinable package static var pragma: FieldName { FieldName(29) }
    @inlinable package static var priority: FieldName { FieldName(30) }
    @inlinable package static var proxyAuthenticate: FieldName { FieldName(31) }
    @inlinable package static var proxyAuthorization: FieldName { FieldName(32) }
    @inlinable package static var proxyConnection: FieldName { FieldName(33) }
    @inlinable package static var range: FieldName { FieldName(34) }
    @inlinable package static var retryAfter: FieldName { FieldName(35) }
    @inlinable package static var server: FieldName { FieldName(36) }
    @inlinable package static var setCookie: FieldName { FieldName(37) }
    @inlinable package static var strictTransportSecurity: FieldName { FieldName(38) }
    @inlinable package static var te: FieldName { FieldName(39) }
    @inlinable package static var trailer: FieldName { FieldName(40) }
    @inlinable package static var transferEncoding: FieldName { FieldName(41) }
    @inlinable package static var upgrade: FieldName { FieldName(42) }
    @inlinable package static var userAgent: FieldName { FieldName(43) }
    @inlinable package static var vary: FieldName { FieldName(44) }
    @inlinable package static var wwwAuthenticate: FieldName { FieldName(45) }

    /// More than the longest name has.
    private static let row = 32

    /// The names in lower case and in the order of their numbers, each in a row of its own; a `StaticString` needs no initialisation and no
    /// bounds check.
    ///
    /// What follows a name is equal to no byte as ``ByteScan/spells(_:_:_:_:)`` compares.
    private static var rows: StaticString {
        """
        accept__________________________\
        accept-encoding_________________\
        accept-language_________________\
        accept-ranges___________________\
        age_____________________________\
        alt-svc_________________________\
        authorization___________________\
        cache-control___________________\
        connection______________________\
        content-disposition_____________\
        content-encoding________________\
        content-length__________________\
        content-location________________\
        content-range___________________\
        content-type____________________\
        cookie__________________________\
        date____________________________\
        etag____________________________\
        expect__________________________\
        expires_________________________\
        host____________________________\
        if-match________________________\
        if-modified-since_______________\
        if-none-match___________________\
        if-range________________________\
        if-unmodified-since_____________\
        keep-alive______________________\
        last-modified___________________\
        location________________________\
        pragma__________________________\
        priority________________________\
        proxy-authenticate______________\
        proxy-authorization_____________\
        proxy-connection________________\
        range___________________________\
        retry-after_____________________\
        server__________________________\
        set-cookie______________________\
        strict-transport-security_______\
        te______________________________\
        trailer_________________________\
        transfer-encoding_______________\
        upgrade_________________________\
        user-agent______________________\
        vary____________________________\
        www-authenticate________________
        """
    }

    /// Where each name is in ``rows``, counted from the digit 0, by its ``slot(_:_:_:)``: no two names have the same.
    private static var slots: StaticString {
        #"""
        V.H..0P.AB......].F....6....S...\#
        5...J....O4.UW..K.I\1.......>@..\#
        .G....:..<.;=T.73.L..MQ..[.R?.X.\#
        .......Y.82.DN...E..C....9....Z.
        """#
    }

    /// The sum that tells the names apart: who adds one to them looks for factors that do so for all of them.
    @inline(__always)
    private static func slot(_ length: Int, _ first: UInt8, _ last: UInt8) -> Int {
        (length &* 16 &+ Int(first) &+ Int(last) &* 37) & 127
    }

    /// What the bytes at a position spell in any case.
    @inline(__always)
    init(_ bytes: UnsafeRawBufferPointer, _ start: Int, _ length: Int) {
        self = .other
        guard length >= 2, length < Self.row else { return }
        // Of what is no letter the comparison has to do with, as of what has another length.
        let slot = Self.slot(length, bytes[start] | 0x20, bytes[start &+ length &- 1] | 0x20)
        let number = Self.slots.utf8Start[slot] &- UInt8(ascii: "0")
        guard number < Self.count else { return }
        let row = UnsafeRawPointer(Self.rows.utf8Start) + Int(number) &* Self.row
        guard row.load(fromByteOffset: length, as: UInt8.self) == UInt8(ascii: "_") else { return }
        guard ByteScan.spells(bytes, start, row, length) else { return }
        self = FieldName(number)
    }

    /// The name that ends at the first colon of a line, where it is known: then `colon` moves there.
    ///
    /// No byte of it has to be judged: that it is a token is known.
    @inline(__always)
    init(leading bytes: UnsafeRawBufferPointer, from start: Int, to end: Int, _ colon: inout Int) {
        self = .other
        let limit = min(end, start &+ Self.row)
        let found = ByteScan.first(UInt8(ascii: ":"), bytes, from: start, to: limit)
        guard found < limit else { return }
        self = FieldName(bytes, start, found &- start)
        if self != .other { colon = found }
    }

    /// How many names are known.
    private static let count: UInt8 = 46

    /// The names that are known, in lower case.
    package static var known: [(name: FieldName, text: String)] {
        (0..<count).map { number in
            let row = UnsafeBufferPointer(start: rows.utf8Start + Int(number) * Self.row, count: Self.row)
            return (FieldName(number), String(decoding: row.prefix { $0 != UInt8(ascii: "_") }, as: UTF8.self))
        }
    }
}
