//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

public import Foundation

// Names of Core Foundation, of which Linux has no public one, so that code about certificates compiles unchanged.

/// Bytes, as Apple's Security framework takes and gives them.
public typealias CFData = NSData
/// An array of objects.
public typealias CFArray = NSArray
/// A string.
public typealias CFString = NSString
/// A dictionary of objects.
public typealias CFDictionary = NSDictionary
/// A point in time.
public typealias CFDate = NSDate
/// A number.
public typealias CFNumber = NSNumber
/// An error.
public typealias CFError = NSError
/// Any object.
public typealias CFTypeRef = AnyObject
/// An index or a count.
public typealias CFIndex = Int
/// A set of flags.
public typealias CFOptionFlags = UInt
/// Seconds since the beginning of 2001.
public typealias CFAbsoluteTime = Double
/// The result of a function of the Security framework; `errSecSuccess` is 0.
public typealias OSStatus = Int32

/// Where memory comes from on Apple's platforms; there is none here, and functions that ask for one take nil.
public final class CFAllocator: Sendable {
    private init() {}
}

/// The usual allocator: nil.
public var kCFAllocatorDefault: CFAllocator? { nil }

/// The first byte, valid for as long as the data is.
///
/// - Returns: The byte's address, or nil where there are no bytes.
@discardableResult
public func CFDataGetBytePtr(_ theData: CFData) -> UnsafePointer<UInt8>? {
    theData.length == 0 ? nil : theData.bytes.assumingMemoryBound(to: UInt8.self)
}

/// How many bytes there are.
///
/// - Returns: The length in bytes.
@discardableResult
public func CFDataGetLength(_ theData: CFData) -> CFIndex { theData.length }

/// How many objects there are.
///
/// - Returns: The count.
@discardableResult
public func CFArrayGetCount(_ theArray: CFArray) -> CFIndex { theArray.count }

/// The error's code.
///
/// - Returns: The code.
@discardableResult
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }

/// The error's domain.
///
/// - Returns: The domain.
@discardableResult
public func CFErrorGetDomain(_ error: CFError) -> CFString { error.domain as NSString }

/// What the error says.
///
/// - Returns: A text for people.
@discardableResult
public func CFErrorCopyDescription(_ error: CFError) -> CFString? { error.localizedDescription as NSString }
