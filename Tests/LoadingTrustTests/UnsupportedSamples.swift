// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Certificates whose signatures cannot be verified, valid from 2020 to 2120; made with `openssl ca`.
enum UnsupportedSamples {
    /// A root with an RSA key, signed with RSASSA-PSS and SHA-256.
    static let root = """
        -----BEGIN CERTIFICATE-----
        MIIDTTCCAgGgAwIBAgIBATBBBgkqhkiG9w0BAQowNKAPMA0GCWCGSAFlAwQCAQUA
        oRwwGgYJKoZIhvcNAQEIMA0GCWCGSAFlAwQCAQUAogMCASAwEzERMA8GA1UEAwwI
        UFNTIFJvb3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBMxETAP
        BgNVBAMMCFBTUyBSb290MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA
        z4SHXC8f7fjmbkARORrYLCx/HpPPJsOLljhxeirlGyE4mzxI+NGWPzBRpQrytCii
        a8Yx/zBEyFAYNvA29D/fZJh4k1dIXTd4d/cep4BZcJ7vWyeDifNgvgKZRzd01Rzv
        7qhymX5oq410SF37qaWZEfZWcb5X9mC71U4a1TMZPtUkbQpWPJ7hHvLfId7r18h8
        AGslBPGCGalvIo70R7+Y5QQw+TOMrHB8RgKMYtyfECppoD3cE83Gznlp/fyj6WJh
        hXAeiVFoFKWaX5HGmsERqL4FVak8XXxFGrUerhxQoXlQIH3vzpBUegtxWqpYbSE/
        o6z28eWKoELj8IBDi1QXLQIDAQABo0IwQDAPBgNVHRMBAf8EBTADAQH/MA4GA1Ud
        DwEB/wQEAwICBDAdBgNVHQ4EFgQUVTCb76GxCsVsNViFbSFjAhtHAwowQQYJKoZI
        hvcNAQEKMDSgDzANBglghkgBZQMEAgEFAKEcMBoGCSqGSIb3DQEBCDANBglghkgB
        ZQMEAgEFAKIDAgEgA4IBAQC75EBHDrCVSEmG6KSa6d+9fKIrJvrBvgMmlBxxUdIY
        ZK/rr2BGd2Eb1NVCNI0o0qEqBJVHwFjQ43kqIlu+cKPbMIlbBcvab4Ju2SDrP4A5
        zbds6WBdJEnKWEOYGHfQhG7wYPmlwAfja9Mn7uis9x9lFQEBxGNIl0GRUM41uXFp
        aOhxLRGjYyJiBsXoh6mU7BcAHTRb3vQ8XT7ots4N9EtgcPSIFWKRzhwC3wjYS4De
        hU4zGQ0l0uG/H49G1hgjRbH2Cd522qGxTygjsHDztmpKZZciH5FgkS9SSAk5/BVY
        2Y0qMpZDjSgtzzXaEIu7VFQzfDq6iQW9WjX7UYNYv+u8
        -----END CERTIFICATE-----
        """
    /// A server's certificate for a.example that the root signed with PKCS #1 and SHA-256.
    static let server = """
        -----BEGIN CERTIFICATE-----
        MIICUTCCATmgAwIBAgIBAjANBgkqhkiG9w0BAQsFADATMREwDwYDVQQDDAhQU1Mg
        Um9vdDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowETEPMA0GA1UE
        AwwGU2VydmVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEpPPcTkz+eeGEJemi
        BpX+YYDJJst6B70kwCApjuDYEvYtsGTboLfQIYEiS6Su7a2Uuamh5U6IGRW3m3bQ
        xFAWwKN7MHkwDAYDVR0TAQH/BAIwADAUBgNVHREEDTALgglhLmV4YW1wbGUwEwYD
        VR0lBAwwCgYIKwYBBQUHAwEwHQYDVR0OBBYEFE3Vdov0ayOHc8bEJjgzLkUpYlwI
        MB8GA1UdIwQYMBaAFFUwm++hsQrFbDVYhW0hYwIbRwMKMA0GCSqGSIb3DQEBCwUA
        A4IBAQC59TF/j73Qh9G+k3560U0Mf/ypyoslyAt1zK9j4SWGKjGD2fyiZv0My0Zf
        k+W2p/MmhGgpKu5K5XVhbadT0MxSFulGVrKZyp51OsqO4lfaBuGgNDpoTRMNi/KC
        +ZYkzixXcLAXj8Sj+nMsx/VQ9QRJV828Waqt1qoZVOYNI0ma+Vpgb1E9b6UoIFn4
        2lDhYE9/1O0v6x5kPIZ1F7j9791QJhY4shbl4N5lOO4oTu8sWpIh5m+QEMWOWwP5
        Dja7scWobuduEFqbgsmi37j116b0H2iWCIWqS+r5AiOUDM5YeS5hNxfS2badZMXg
        Qz4AdXv4qdSfhYpQZkKymvlNdWK0
        -----END CERTIFICATE-----
        """
    /// A server's certificate for a.example that the root signed with RSASSA-PSS.
    static let pssServer = """
        -----BEGIN CERTIFICATE-----
        MIICuTCCAW2gAwIBAgIBAzBBBgkqhkiG9w0BAQowNKAPMA0GCWCGSAFlAwQCAQUA
        oRwwGgYJKoZIhvcNAQEIMA0GCWCGSAFlAwQCAQUAogMCASAwEzERMA8GA1UEAwwI
        UFNTIFJvb3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBExDzAN
        BgNVBAMMBlNlcnZlcjBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFFhiaiuZ3Zj
        mNwhtSqC9sHyIILrKcUZBP9aa8s/wHs8vmPPSm/3rZ9VALwnjl+AEu2xEFCONKAa
        tWFGYEXHi3CjezB5MAwGA1UdEwEB/wQCMAAwFAYDVR0RBA0wC4IJYS5leGFtcGxl
        MBMGA1UdJQQMMAoGCCsGAQUFBwMBMB0GA1UdDgQWBBSJRTyxdXrgZRzOGI+XhMk2
        QgZoeTAfBgNVHSMEGDAWgBRVMJvvobEKxWw1WIVtIWMCG0cDCjBBBgkqhkiG9w0B
        AQowNKAPMA0GCWCGSAFlAwQCAQUAoRwwGgYJKoZIhvcNAQEIMA0GCWCGSAFlAwQC
        AQUAogMCASADggEBAEqx94xmcd5hJTNDeWEKURG6EK/yfaVFZKTJJFL4FNU77H2T
        u1I7WazI/0TRk+4SThH1M+Tq/kJOVTkIVoX7RW2ST53bSj+IYYbXBeHyPjlOAt2x
        DvoQvtm2+otmwu9t2w4zDcaOG+Tmd7ti/tAViNaNn1WFUQjsCih+DATjdGyUGJYo
        /eLs6v8Zjk7S5eEWT0lfjw6xi7ZUbGa9GuZI/SRJWYU1w3+vz8ANdFf4/vXI9yA1
        XXIaenoBXS1i/ypwKcZPFHm+DPhUer2xImtyBS+jxjUqMzy0ba2OIR3N2xs/h9xQ
        HxAbcycmZSj4gVpjVQLw4cT1bTPCnViusHE0770=
        -----END CERTIFICATE-----
        """
    /// A self-signed certificate for localhost with a P-256 key, signed with ECDSA and SHA-1.
    static let oldServer = """
        -----BEGIN CERTIFICATE-----
        MIIBXTCCAQOgAwIBAgIBBDAJBgcqhkjOPQQBMBQxEjAQBgNVBAMMCWxvY2FsaG9z
        dDAgFw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowFDESMBAGA1UEAwwJ
        bG9jYWxob3N0MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE4efoNkqwrrVC321p
        iCrBkrgRmqR5tx7D9JfMV0kiKjLEbjJKFSsQauzMbX63dQPpd5lno3/u7CZjCLSD
        7WCxMKNFMEMwDAYDVR0TAQH/BAIwADAUBgNVHREEDTALgglsb2NhbGhvc3QwHQYD
        VR0OBBYEFDb3162RYfjAulJ964fdhzxg4INGMAkGByqGSM49BAEDSQAwRgIhAOmt
        JSwd0TgMrkUTDrAAEsWYwl9hqnuITxPkcG7OpPXvAiEA03dE74+ocRzNqvZb/8oJ
        A0RfkbJyi0kvO5HJJ/rPZbE=
        -----END CERTIFICATE-----
        """

    static func der(_ pem: String) -> [UInt8] {
        Array(Data(base64Encoded: pem.split(separator: "\n").dropFirst().dropLast().joined()) ?? Data())
    }
}
