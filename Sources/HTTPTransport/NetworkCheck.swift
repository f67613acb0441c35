//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//
import NIOCore

/// Tells whether this machine is connected to anything but itself.
enum NetworkCheck {
    /// True if some interface has an address beyond loopback and the link; also if that cannot be found out.
    static func hasNetwork() -> Bool {
        guard let devices = try? System.enumerateDevices() else { return true }
        return devices.contains { device in
            switch device.address {
            case .v4: device.address?.ipAddress?.hasPrefix("127.") == false
            case .v6:
                device.address?.ipAddress.map { $0 != "::1" && !$0.hasPrefix("fe80:") } ?? false
            case .unixDomainSocket, nil: false
            }
        }
    }
}
