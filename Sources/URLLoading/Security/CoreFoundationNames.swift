// SPDX-License-Identifier: Apache-2.0

public import Foundation

// Core Foundation names that are not public on Linux, so that code about certificates compiles unchanged.

/// Bytes, as used by Apple's Security framework.
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
/// Seconds since January 1, 2001.
public typealias CFAbsoluteTime = Double
/// The result code of a function of the Security framework; `errSecSuccess` is 0.
public typealias OSStatus = Int32

/// A memory allocator on Apple's platforms; on Linux, pass nil to functions with an allocator parameter.
public final class CFAllocator: Sendable {
    private init() {}
}

/// The default allocator: nil.
public var kCFAllocatorDefault: CFAllocator? { nil }

/// Returns a pointer to the first byte; the pointer is valid during the lifetime of the data.
///
/// - Returns: The pointer, or nil if the data is empty.
@discardableResult
public func CFDataGetBytePtr(_ theData: CFData) -> UnsafePointer<UInt8>? {
    theData.length == 0 ? nil : theData.bytes.assumingMemoryBound(to: UInt8.self)
}

/// Returns the number of bytes.
///
/// - Returns: The length in bytes.
@discardableResult
public func CFDataGetLength(_ theData: CFData) -> CFIndex { theData.length }

/// Returns the number of objects.
///
/// - Returns: The count.
@discardableResult
public func CFArrayGetCount(_ theArray: CFArray) -> CFIndex { theArray.count }

/// Returns the error's code.
///
/// - Returns: The code.
@discardableResult
public func CFErrorGetCode(_ error: CFError) -> CFIndex { error.code }

/// Returns the error's domain.
///
/// - Returns: The domain.
@discardableResult
public func CFErrorGetDomain(_ error: CFError) -> CFString { error.domain as NSString }

/// Returns the error's description.
///
/// - Returns: A human-readable text.
@discardableResult
public func CFErrorCopyDescription(_ error: CFError) -> CFString? { error.localizedDescription as NSString }
