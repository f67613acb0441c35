//===----------------------------------------------------------------------===//
//
// This source file is part of the URLLoading project: URL loading for Swift on Linux.
//
// Licensed under Apache License v2.0
// SPDX-License-Identifier: Apache-2.0
//
//===----------------------------------------------------------------------===//

/// Messages of version 2 in Base64, which must not change, and must be readable for as long as that version is supported.
enum RecordedBytes {
    static let programs = [
        "AsQBAQZzdWJtaXQFuQEBARECdgEZaHR0cHM6Ly9leGFtcGxlLmNvbS9hP2IjYwIUaHR0cHM6Ly9leGFtcGxlLm9yZy8DA1BVVAQSBkFj"
            + "Y2VwdAMqLyoBWATDpMO/BQwBBGZpbGUDBC9hIGIGCEApAAAAAAAABwEBCAEACQFwCgkBAQMCAQEDAQMDCGRvd25sb2FkBAIBAgUCIAgG"
            + "CD/QAAAAAAAABwhBx9eEAAAAAAgJAQFkAgEAAwEHCQhBxTrEJ0AAAAoBAQ==",
        "AoIDAQZhdHRhY2gE9wIBAWkC5QIBMQQEAUEBYgcBAA4CAQEPHgQPDgEGAQFhAgEBAgQDOjoxBgsKAQMBAWECAwIBAhUCL3QCPQEQAQ4B"
            + "BnNvY2tzNQIBcAMBAQIFAgN3aHkDCgEIByoubG9jYWwEFhEBCwQJaHR0cDovL2EvAgIBZAMEAQEFTgQBAQUlFAELZXhhbXBsZS5jb20D"
            + "AQEEAgMBDwEKMTAuMC4wLjAvOAUBAAYiIQELZXhhbXBsZS5vcmcCAQEFD2l0IG5hbWVzIG5vIGtleQYKAQRmaWxlAgIvYwcIAQZtZW1v"
            + "cnkJbzYBHAEBaAICAbsDBWh0dHBzBQFyBglIVFRQQmFzaWMCEwEIcGFzc3dvcmQCAXUDAXAGAQEDAQE3ASIBAWgCAVADBGh0dHAEAQEG"
            + "EUNsaWVudENlcnRpZmljYXRlAhEBCGlkZW50aXR5BAIBAQUBAgsBAAwXAQlhcmd1bWVudHMCBgIvcAItYQMCL2QDAQEEAQEFBAEBAQI=",
        "eyJraW5kIjoiaGVsbG8iLCJyb2xlIjoic2Vzc2lvbiIsInZlcnNpb24iOjF9",
        "AiUBB2NvbW1hbmQGFwELc2V0UHJpb3JpdHkCCD/gAAAAAAAADAEB",
        "AgkBBG5vdGUMAQE=",
        "AicBBmFuc3dlcggaAQpjcmVkZW50aWFsAgN1c2UDBwEFdHJ1c3QNAQM=",
        "AiQBBmFuc3dlcggUAQpjcmVkZW50aWFsAgZjYW5jZWwMAQcNAQM=",
        "AiEBBmFuc3dlcggUAQdkZWxheWVkAgdyZXBsYWNlBAANAQM=",
        "AgkBBHRvbGQMAQE=",
        "Ag8BDWV2ZW50c0hhbmRsZWQ=",
        "AgwBCmludmFsaWRhdGU=",
        "AhEBBXJlbmV3CQVmbHVzaA0BAQ==",
        "AhcBB3Byb3hpZXMKCWh0dHA6Ly9hLw0BAQ==",
        "AhcBBm1hbmFnZQsKAQVwYXVzZQIBBQ0BAQ==",
        "AhcBBm1hbmFnZQsKAQRxdWl0AwIvcA0BAQ==",
    ]

    static let daemons = [
        "As0BAQVldmVudAfAAQEIZmluaXNoZWQMswECKwEIdGltZWRPdXQCAW0DAWMECWh0dHA6Ly9hLwUBAgYCAQEHAQEIAQEJAQEDIQEJaHR0"
            + "cDovL2EvAhECAQADAgDIBAJPSwUEAUEBYgQBCQRYVwELAQlodHRwOi8vYS8DCmxvY2FsQ2FjaGUECD/4AAAAAAAADwhodHRwLzEuMRgo"
            + "AwM6OjEEAgG7BQIDBA8BARQWAQRldGgwAgECAwV3aXJlZAcEAzo6MQUBAQYBAgcBAw0BBA==",
        "AgwBB3dlbGNvbWUCAQE=",
        "eyJraW5kIjoicmVmdXNlZCIsInJlZnVzYWwiOiJpblVzZSIsInRleHQiOiJ3aHkifQ==",
        "AgoBCGF0dGFjaGVk",
        "AlQBBWtub3duBUsBGAEBAQIAAwdjb2xsZWN0CQg/8AAAAAAAAAIJc3VzcGVuZGVkAwMDAQUECwEJaHR0cDovL2IvBRIBCWZpbGU6Ly8v"
            + "YQMFAQNhL2I=",
        "AhABCGFjY2VwdGVkBgQBAQEC",
        "AhoBCHJlamVjdGVkDQEBDgsBCWNhbmNlbGxlZA==",
        "AhwBBWV2ZW50BxABBXdyb3RlCAEBCgECCwEDDQEB",
        "AhoBBWV2ZW50Bw4BCXJlc3VtYWJsZQcBAQ0BAQ==",
        "AkMBCHF1ZXN0aW9uCDEBCWNoYWxsZW5nZQIkARsBAWgCAgG7AwVodHRwcwYLU2VydmVyVHJ1c3QCAgEBBAEBDQEBDwEB",
        "AiQBCHF1ZXN0aW9uCBIBDmRlbGF5ZWRSZXF1ZXN0AwANAQEPAQE=",
        "AgwBB3JlbmV3ZWQPAQE=",
        "AhkBB3Byb3hpZXMJCwAJaHR0cDovL2EvDwEB",
        "Ag0BBmZhaWxlZA4ADwEB",
        "AjABCXRyYW5zZmVycwodHAEBAgICL3AEAQMHBnBhdXNlZAoIP/AAAAAAAAAPAQEQAQE=",
        "AhcBBnN0YXR1cwsKAQEHDQIBYQ4BAA8BAQ==",
        "AgwBA2xvZwwCAWEPAQE=",
        "AgkBBGRvbmUPAQE=",
    ]
}
