// swift-tools-version:6.2

import PackageDescription

// Scripts/consumers builds and runs these programs, which were written for FoundationNetworking. Before that, the script creates
// the repository of a release.
let released = "file://\(Context.packageDirectory)/../../.build/released/swift-url-loading"

let package = Package(
    name: "Consumers",
    dependencies: [
        .package(url: released, from: "0.1.0", traits: []),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/OpenCombine/OpenCombine", from: "0.14.0"),
    ],
    targets: [
        // In this program, only the manifest names URLLoading.
        .executableTarget(name: "Unmodified", dependencies: [.product(name: "URLLoading", package: "swift-url-loading")]),
        // In the other programs, too, only the manifest names URLLoading. Their dependencies import FoundationNetworking and do
        // not know URLLoading.
        .executableTarget(
            name: "OverHTTPTypes",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                .product(name: "HTTPTypesFoundation", package: "swift-http-types"),
            ]),
        .executableTarget(
            name: "OverOpenCombine",
            dependencies: [
                .product(name: "URLLoading", package: "swift-url-loading"),
                .product(name: "OpenCombineFoundation", package: "OpenCombine"),
            ]),
    ]
)
