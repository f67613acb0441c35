// SPDX-License-Identifier: Apache-2.0

import LibC
import LoadingModel

/// How packets of a service are marked for the network, and which queue of this machine they use.
///
/// The code points are those of RFC 4594; Apple's systems use the same. The priority is the 802.1D user priority that corresponds
/// to the access category of RFC 8325, section 4: 1 for background, 4 for video, 6 for voice. Linux's queueing disciplines
/// interpret these numbers accordingly. Best effort keeps the default priority 0; in `pfifo_fast` the priorities 3 and 5 would rank
/// below it.
struct TrafficMarks: Hashable {
    /// The differentiated services code point, which has six bits.
    let codePoint: CInt
    let priority: CInt

    /// Nil for ordinary traffic.
    init?(_ service: ConnectionNeeds.Service) {
        switch service {
        case .ordinary: return nil
        case .background: (codePoint, priority) = (8, 1)  // CS1
        case .responsiveData: (codePoint, priority) = (18, 0)  // AF21
        case .streaming: (codePoint, priority) = (26, 4)  // AF31
        case .responsiveMedia: (codePoint, priority) = (32, 4)  // CS4
        case .video: (codePoint, priority) = (34, 4)  // AF41
        case .voip, .callSignaling: (codePoint, priority) = (40, 4)  // CS5
        case .voice: (codePoint, priority) = (46, 6)  // EF
        }
    }

    /// Whether the kernel has loaded the congestion control that yields to all others (TCP Low Priority).
    ///
    /// The kernel's list is read first, because requesting a congestion control that is not loaded would make the kernel run
    /// `modprobe`. Reading a procfs file does not wait for a disk.
    static let hasLowPriority: Bool = {
        let file = open("/proc/sys/net/ipv4/tcp_available_congestion_control", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        var bytes = [UInt8](repeating: 0, count: 512)
        let count = read(file, &bytes, bytes.count)
        return names(lowPriority: String(decoding: bytes.prefix(max(0, count)), as: UTF8.self))
    }()

    static func names(lowPriority text: String) -> Bool { text.split { $0 == " " || $0 == "\n" }.contains("lp") }
}
