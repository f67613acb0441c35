// SPDX-License-Identifier: Apache-2.0

/// Certificates and their keys in the forms of PEM that OpenSSL 3.0 writes.
enum PEMSamples {
    /// The certificate "Client ec" with a P-256 key, valid from 2020 to 2120.
    static let certificate = """
        -----BEGIN CERTIFICATE-----
        MIIBqjCCAVCgAwIBAgIUZ7BhAf7DkSdxM2bAliE3qNH+dYQwCgYIKoZIzj0EAwIw
        GzEZMBcGA1UEAwwQQ2xpZW50IEF1dGhvcml0eTAgFw0yMDAxMDEwMDAwMDBaGA8y
        MTIwMDEwMTAwMDAwMFowJjESMBAGA1UEAwwJQ2xpZW50IGVjMRAwDgYDVQQKDAdF
        eGFtcGxlMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEHuvWw6nqf9ua6DcwKLjP
        pUDo0qMhHqLLPKOlG7Oosnca3lufSIypNBmQcKUMrpNBfI42KrCYVm8duBNLd3zg
        3KNlMGMwDAYDVR0TAQH/BAIwADATBgNVHSUEDDAKBggrBgEFBQcDAjAdBgNVHQ4E
        FgQUiQfZyOZe1+j3ZQhH+Zgg8vQPmJQwHwYDVR0jBBgwFoAUQxiLcKAloMJCZVdD
        F6+BYIgx4UUwCgYIKoZIzj0EAwIDSAAwRQIgGHov6lwDH9d0Y43ywkDeDrrMPa+x
        AfAp+HI+Yq19vsECIQCOsDpqq0YseyUY92ZKcdTI6uKhgiaKFCEudWIUaeCwSQ==
        -----END CERTIFICATE-----
        """
    /// The certificate of "Client Authority", which issued ``certificate``.
    static let issuer = """
        -----BEGIN CERTIFICATE-----
        MIIBfTCCASKgAwIBAgIUPlY+pAJxmx7jB1KlNUVInlnDJWIwCgYIKoZIzj0EAwIw
        GzEZMBcGA1UEAwwQQ2xpZW50IEF1dGhvcml0eTAgFw0yMDAxMDEwMDAwMDBaGA8y
        MTIwMDEwMTAwMDAwMFowGzEZMBcGA1UEAwwQQ2xpZW50IEF1dGhvcml0eTBZMBMG
        ByqGSM49AgEGCCqGSM49AwEHA0IABHQVoSQpEjk1CJPSj9pu8hYIzY8sXfM9u5D6
        TGxKyNb4+qsxas0uE6hv89pC3EzNmOHJaKKntMfG1GeCEZW1d4ijQjBAMA8GA1Ud
        EwEB/wQFMAMBAf8wDgYDVR0PAQH/BAQDAgIEMB0GA1UdDgQWBBRDGItwoCWgwkJl
        V0MXr4FgiDHhRTAKBggqhkjOPQQDAgNJADBGAiEAvKcAw6Q2gIbwekrTK1MSFrxA
        sm60YwV0yNABs1ndUWYCIQDoJ9J9s1/+BxESC0oMXQiSfzHP6Ng5zbfwE0yS+8/x
        BQ==
        -----END CERTIFICATE-----
        """
    /// The key of ``certificate`` in the format SEC 1.
    static let sec1 = """
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIJazmgq4xn2kwFAEgwh/MsWe2UXlGTxNaIPrgyN4+ej3oAoGCCqGSM49
        AwEHoUQDQgAEHuvWw6nqf9ua6DcwKLjPpUDo0qMhHqLLPKOlG7Oosnca3lufSIyp
        NBmQcKUMrpNBfI42KrCYVm8duBNLd3zg3A==
        -----END EC PRIVATE KEY-----
        """
    /// The key of ``certificate`` in the format PKCS #8.
    static let pkcs8 = """
        -----BEGIN PRIVATE KEY-----
        MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQglrOaCrjGfaTAUASD
        CH8yxZ7ZReUZPE1og+uDI3j56PehRANCAAQe69bDqep/25roNzAouM+lQOjSoyEe
        oss8o6Ubs6iydxreW59IjKk0GZBwpQyuk0F8jjYqsJhWbx24E0t3fODc
        -----END PRIVATE KEY-----
        """
    /// The key encrypted with PBES2: AES-256-CBC, HMAC with SHA-256; the password is "geheim".
    static let aes256 = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAiwWcwKJSarjwICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEO2FSOC1U7CfXdwVWp+lEQcEgZAp
        k4AYwUl4MFGdOETqTJTsv6UBasgVLFQh3M4MWkKsfRyDvvVfCkyt1eqWrokW1Dg3
        rez22gUmvuZov2C5iSA/5qY5SwFxXaK4M/U1p5BO9CEq6whXDqd0AlrFZyOZcos3
        gY+Bq5q3fdKVVKQV/AENJ83d0mHQDJOBg2s2NnKF0mQwIcwHMiCYFHmGAmPVecM=
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// The key encrypted with PBES2: AES-128-CBC, HMAC with SHA-1.
    static let aes128 = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAjr9EgUwLOSiQICCAAw
        HQYJYIZIAWUDBAECBBCUfMaiuPwDJc7pWEcVOgEzBIGQ+YbyO0biSH5hDBPwHhij
        1RrgYnQSI0nqFPN7GbhkpFZN61O3MqVAxGz/fGHC3dFOce9t2Z+IBehBH2xuLbuU
        uDaZ4caVxLw6lHk3a0V2hvHLKbGmr41Kf5PFRwcerewPfd8QafTEwWgXde7wxNdz
        GNcaZTsSnqJp5A3galrz00+aG8/gnYXhVavVM5UwZbd3
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// The key encrypted with PBES2: triple DES.
    static let tripleDES = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHjME4GCSqGSIb3DQEFDTBBMCkGCSqGSIb3DQEFDDAcBAiqojfQigbfvAICCAAw
        DAYIKoZIhvcNAgkFADAUBggqhkiG9w0DBwQI8xJD8X1XzP0EgZAE+UE9SuPE9Ndg
        Zpvh/Zqw3n4VisF4AsyXTqtTBzVGBAIEZ1NzBhhTZuNCI2ygq+uIVjDMW98Q+9PJ
        LzPBAVQ10LgFVB5DLWIPjswjLs9hu3xoSh5JENspKsUyXfaKZahtTk+qGEFjHCS4
        s3cXcKxpNVLZBkxKOVcHJhdunljyXiaRMOgeJ4hQab8lwfW8+Fk=
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// The key encrypted with triple DES and the key derivation of PKCS #12.
    static let pkcs12Style = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIGxMBwGCiqGSIb3DQEMAQMwDgQIYoHLk07X3hACAggABIGQ2TuPF/BAiDT2a1/H
        7jj/r6Aw6zJP1b4f4mDtZxO+14NdKHzg0rJ2B5cWZHidg5/4uBQilKqN7xzcciqn
        eAU022Ae4mpVtQ08t8H25jI62IK9cCWv2eahfKUevJv0rkR3yj8KimHW+qoQLHn4
        TxdiTQGxmU7beIfnDZUZB9zFABYfI3XXjJhypy7b/8cdanX0
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// The key encrypted with a key derivation that is not supported.
    static let scrypt = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHkME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAj+VCGzvYiIPQICQAAC
        AQgCAQEwHQYJYIZIAWUDBAEqBBAdjOhQWlP+2F7EUA3O48BiBIGQsUxMp0X0/0Bq
        k58zaNflvbV6uKfLYXQR8upxEVg5+OWks16Mu+aRH+2VKm8yW3ikob5gZt4I+07Z
        HR/d9bkiQqk19W2LQJwANI3LiBNcCckCNkvMYMFRZDXzC/kA/vvw/oJ4xMkbC0D1
        8wCNRiaAaqikqrwTbKcNYDyGErfXiqM8yq2j9pigx1IyHQf0fPgy
        -----END ENCRYPTED PRIVATE KEY-----
        """
    /// The key encrypted with AES-256-CBC in OpenSSL's traditional format.
    static let traditionalAES = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-256-CBC,177F2DC5CC644DF54FC37CF23C15A9C0

        sPU/PX6oUeVdUoH1beeAMV4QI80sLy69YXG+Pcqs4Q99hr0Qwf1pw4FZi040r/CM
        4iUp61ti/cmHxnsRURZ4k0+pFnnolaq2rNCkF898saW2smmzrj/waysxtWZDs/zQ
        am8zHpyOaQGtUcJFz/qb0mZDT6ktYblS5LlcUfOjfTI=
        -----END EC PRIVATE KEY-----
        """
    /// The key encrypted with triple DES in OpenSSL's traditional format.
    static let traditionalTripleDES = """
        -----BEGIN EC PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: DES-EDE3-CBC,DADDEB8E6FEA36B2

        4h+xh5AokrjDHVzbEC7iTJz9Q8pIhJvRS9xL4ZhnFcD8vhupbP/acy7S4rJ9+VgC
        t6W2KjYG93zX4COsQpIRTjftIlkVv+wl7kETIt1Uk3PkHTOgekTPKkSKTLRwNPXl
        jyURlKff8r8/YTt9VvIPO3uJM2H+wNwE1EQWV3W1eOw=
        -----END EC PRIVATE KEY-----
        """
    /// A key on the curve secp256k1, which is not supported.
    static let otherCurve = """
        -----BEGIN EC PRIVATE KEY-----
        MHQCAQEEIIu1JuU1Kn+Ug6Q7WXIiVHbRo18Q79hC52cJgzvYsVEQoAcGBSuBBAAK
        oUQDQgAEF9nLwsMFCkvjQPnSwJa+kk2p2PbK8CUg1zUGi3Gq6oWH7inFSSkQRglt
        jHxzUHxMFnK2ABzh/3d1iBR7+Pv3CQ==
        -----END EC PRIVATE KEY-----
        """
    /// The certificate "Client rsa" with a key of 2048 bits.
    static let rsaCertificate = """
        -----BEGIN CERTIFICATE-----
        MIICdjCCAhygAwIBAgIUa1RYU5tGxCxW9MqejWtjNsOFm4owCgYIKoZIzj0EAwIw
        GzEZMBcGA1UEAwwQQ2xpZW50IEF1dGhvcml0eTAgFw0yMDAxMDEwMDAwMDBaGA8y
        MTIwMDEwMTAwMDAwMFowJzETMBEGA1UEAwwKQ2xpZW50IHJzYTEQMA4GA1UECgwH
        RXhhbXBsZTCCASIwDQYJKoZIhvcNAQEBBQADggEPADCCAQoCggEBAKQsEF8EfJV1
        yfvg46xCDw9eE2FnrYMr1gx7VmUwWT/toWYVdb6CSUPSwUpqAFFb3ex6TBKpii17
        jxCgjhBY2XIxA4wqg53jsefOa0gIg51dVhe1zEWp4arGSEdNp4XdwpqzsWANMpZc
        +zTTAqxFSX2uZ9IrzUnQlr14ikxJ5otgg6aBczmn+6nkmn8Qw0Fs7/n+9SGSG0AX
        DStX1sdUBiKuHX41nmW02XuV6ACgft69ZOmq+AzC21oa2B+0h3aHyC6BDtUWx0Ce
        2ru2a6vJyTL8YPAO8vu+aYneyuN4ygFu0StyrmiqdTGgImhT/a5sEkYjcq/9HkyJ
        RRhYLmTLHpECAwEAAaNlMGMwDAYDVR0TAQH/BAIwADATBgNVHSUEDDAKBggrBgEF
        BQcDAjAdBgNVHQ4EFgQUTvfwbNVmNKutuEsrX7wZXDHi+ikwHwYDVR0jBBgwFoAU
        QxiLcKAloMJCZVdDF6+BYIgx4UUwCgYIKoZIzj0EAwIDSAAwRQIgfBVYZZv8yjFh
        /GcJuEQZmTSKFq/KfqjE0/dW9nLuBNkCIQDvgWqY3izSS4MSG5BT71QGJwRm3U6j
        +b2v0vXhZ15OoQ==
        -----END CERTIFICATE-----
        """
    /// The RSA key in the format PKCS #1.
    static let rsaPKCS1 = """
        -----BEGIN RSA PRIVATE KEY-----
        MIIEowIBAAKCAQEApCwQXwR8lXXJ++DjrEIPD14TYWetgyvWDHtWZTBZP+2hZhV1
        voJJQ9LBSmoAUVvd7HpMEqmKLXuPEKCOEFjZcjEDjCqDneOx585rSAiDnV1WF7XM
        RanhqsZIR02nhd3CmrOxYA0yllz7NNMCrEVJfa5n0ivNSdCWvXiKTEnmi2CDpoFz
        Oaf7qeSafxDDQWzv+f71IZIbQBcNK1fWx1QGIq4dfjWeZbTZe5XoAKB+3r1k6ar4
        DMLbWhrYH7SHdofILoEO1RbHQJ7au7Zrq8nJMvxg8A7y+75pid7K43jKAW7RK3Ku
        aKp1MaAiaFP9rmwSRiNyr/0eTIlFGFguZMsekQIDAQABAoIBADt8p/X2BzqU8rps
        87JgQVq9KOKbkbi88pOVQWnrCfvrHBeEYSTFysxjmpxfKnxQgGqGqff9LM9sPRu2
        QaPUvf3tmq54XTah4b3wAtmYFDC6OE7hFgKMGvQpYtlLXw9XmoM552S5g4IOcQvk
        BczsUkPTJVV3f6xmg6hl/B7GjF4l5t9rJJavgS/wmx/G81f5LuxiI9Y5JxB6Ssu0
        cPW1s+t1AplFPGFjOAMQSBx3U6z147loBhzBqc+VAXxKPQqWSaT5PYd+1vhFjsWf
        O+81PPgXBEkxR9BEQfHSOZds4hbX2I2dezGtJQF4uFtIVbEoNmBmqfZGZ1wMiExO
        vQSdwG0CgYEA2PZsXWhkttwJa5AhALXxqb0Z3JcwLUYOeLDkU9VbWLWPwGE+WfTD
        RVDbOSrQUkBDvpAixQD1Sr0He1a5t/78D35HSKaskiM3TVeZcN/OMrwNJGRkw/Fu
        2oB1e0dRWW4J9NuXyYlsmkeM8TJU3eurAAyc4C+pa7Pns0an/Eh0dV8CgYEAwbYL
        MFa+WVM1+XK22XFre3nICmHQ/DiyE2qfh/eaM+tup6UqhUyxnWnSviKbfUj1rj+e
        bv9t+wX7FZ7+T3loQHEmvdGSJL0F2ZLVwkrdeff8WiKgSZCRZxAB0MiNk9+ZxuAu
        dEqkZp7aWXmwgOhYnXIfMitJtU7XUQU3vmxigg8CgYBZeiduzmLa1xw7dBFoTaEA
        s7A6vU9tHHtTYwCHYnJtv1Mtr+0bBEqUB6ihhvqrMT2/FYqBXMfMrvCq+TVWoJ4r
        dZTIbZS2IDfqeboaRvKvEccJvy2fca6aBmhtExiFnVAV34pV34sehWum/W7qpwq6
        1njMLFvewy9HTFhzPx5oWQKBgDEgpzPKPBpRZTXvZvo8rqKxHw+rASKGinssJmuI
        Wz5hrj2sQN1vtvgSN5VrF34tu8lGbzr9Yvov6R7xpNOpGcyGJeosNWFF4y7r83SE
        IillwEVn1LjzhjzaLWuzAV0Ib2qlvoJVz94K2Zupph77TkYYBFtn6RindyogJaQQ
        vub3AoGBAJmRWHMvIvaD2XJ8JFPa+/eEmALERtH3VRQXSWwExJm/OXbR7MuuZWvc
        M9RwqS/M1oBpa6zwGBQV9NUPlxSOFr+q3b8cougtAnD7jC2XhZIinDV4nt3qhbd3
        cuMVx76pFwCl4qjYmYHUhrtkvo9EDdJdoUdKFQSlmR1mZAk0RyX2
        -----END RSA PRIVATE KEY-----
        """
    /// The RSA key in the format PKCS #8.
    static let rsaPKCS8 = """
        -----BEGIN PRIVATE KEY-----
        MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQCkLBBfBHyVdcn7
        4OOsQg8PXhNhZ62DK9YMe1ZlMFk/7aFmFXW+gklD0sFKagBRW93sekwSqYote48Q
        oI4QWNlyMQOMKoOd47HnzmtICIOdXVYXtcxFqeGqxkhHTaeF3cKas7FgDTKWXPs0
        0wKsRUl9rmfSK81J0Ja9eIpMSeaLYIOmgXM5p/up5Jp/EMNBbO/5/vUhkhtAFw0r
        V9bHVAYirh1+NZ5ltNl7legAoH7evWTpqvgMwttaGtgftId2h8gugQ7VFsdAntq7
        tmurycky/GDwDvL7vmmJ3srjeMoBbtErcq5oqnUxoCJoU/2ubBJGI3Kv/R5MiUUY
        WC5kyx6RAgMBAAECggEAO3yn9fYHOpTyumzzsmBBWr0o4puRuLzyk5VBaesJ++sc
        F4RhJMXKzGOanF8qfFCAaoap9/0sz2w9G7ZBo9S9/e2arnhdNqHhvfAC2ZgUMLo4
        TuEWAowa9Cli2UtfD1eagznnZLmDgg5xC+QFzOxSQ9MlVXd/rGaDqGX8HsaMXiXm
        32sklq+BL/CbH8bzV/ku7GIj1jknEHpKy7Rw9bWz63UCmUU8YWM4AxBIHHdTrPXj
        uWgGHMGpz5UBfEo9CpZJpPk9h37W+EWOxZ877zU8+BcESTFH0ERB8dI5l2ziFtfY
        jZ17Ma0lAXi4W0hVsSg2YGap9kZnXAyITE69BJ3AbQKBgQDY9mxdaGS23AlrkCEA
        tfGpvRnclzAtRg54sORT1VtYtY/AYT5Z9MNFUNs5KtBSQEO+kCLFAPVKvQd7Vrm3
        /vwPfkdIpqySIzdNV5lw384yvA0kZGTD8W7agHV7R1FZbgn025fJiWyaR4zxMlTd
        66sADJzgL6lrs+ezRqf8SHR1XwKBgQDBtgswVr5ZUzX5crbZcWt7ecgKYdD8OLIT
        ap+H95oz626npSqFTLGdadK+Ipt9SPWuP55u/237BfsVnv5PeWhAcSa90ZIkvQXZ
        ktXCSt159/xaIqBJkJFnEAHQyI2T35nG4C50SqRmntpZebCA6Fidch8yK0m1TtdR
        BTe+bGKCDwKBgFl6J27OYtrXHDt0EWhNoQCzsDq9T20ce1NjAIdicm2/Uy2v7RsE
        SpQHqKGG+qsxPb8VioFcx8yu8Kr5NVagnit1lMhtlLYgN+p5uhpG8q8Rxwm/LZ9x
        rpoGaG0TGIWdUBXfilXfix6Fa6b9buqnCrrWeMwsW97DL0dMWHM/HmhZAoGAMSCn
        M8o8GlFlNe9m+jyuorEfD6sBIoaKeywma4hbPmGuPaxA3W+2+BI3lWsXfi27yUZv
        Ov1i+i/pHvGk06kZzIYl6iw1YUXjLuvzdIQiKWXARWfUuPOGPNota7MBXQhvaqW+
        glXP3grZm6mmHvtORhgEW2fpGKd3KiAlpBC+5vcCgYEAmZFYcy8i9oPZcnwkU9r7
        94SYAsRG0fdVFBdJbATEmb85dtHsy65la9wz1HCpL8zWgGlrrPAYFBX01Q+XFI4W
        v6rdvxyi6C0CcPuMLZeFkiKcNXie3eqFt3dy4xXHvqkXAKXiqNiZgdSGu2S+j0QN
        0l2hR0oVBKWZHWZkCTRHJfY=
        -----END PRIVATE KEY-----
        """
    /// The RSA key encrypted with AES-128-CBC in OpenSSL's traditional format; the password is "geheim".
    static let rsaTraditional = """
        -----BEGIN RSA PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-128-CBC,0261089AD180A1F3F4C6E2FF7AFBBFA5

        Z/KtNMnMLmru31a6oW6Tk35llqpajy2IS/eIeWn8zw45mYVnS0LZFEwLzj2EuuBH
        j6rSK8pulL1v3NEoo3Qr5lUac+qRf5GT/8UF+IHYaE3oEMq9sz+rOLWEGXFLf/xE
        pndPDECJ7ld3ycitfho/Ci96PqCiZA0LAm9vTnKsiu6neBGU5WT1z/o1PX82LqXx
        b5Qcw8DwRbuowZYdgtAQ81Fn9CFXhozvXqvTkMk5OnjiXa6sl1JiUW+I/AVqDe/R
        MN3JAbHdg4poBH5xoEbRD/GnLq7mBz0Wccv1IZ61uRV0yNadVex964xAtKerQOym
        bcIfbZnk8BUg4qarOabPySK9J6AaKvdFxfBLMitduRKiPhcou+J5t0SrgZi2rn4m
        p8QVB9+Rxi2MvY778ogWEUP3ZWFattWZbUqfv2+yXg1UQiEQ1u1xuQuOaUDLmNrV
        qAzk6CQwAWjz2BclaZxHfpFJjghR65Vkmdgny8lZFJf803DRmapqwYBXh19UPKQs
        sAjzctdOVyhoUi+unXCJsOfiwvuqSPjo2/Grl9y3BPaEQFuMVtcMkgYjVPM21DFG
        q5C6B+ESnOG34QdE8/9O2+d+kUyN8Sc9StiLDXmwB0rIPkLT6c9Ei98abDLFsy+D
        hSk4QZHaYFTOiUgYLKXoFAc64TwBrKJVTbgAJWvrksgtOfTpSibXpBKfClvyVvtM
        +ei303YTum5Ehsol/VcGx/3qKe5zN3cCjPp/5TaCMAmLoK8NtTS4o/cyBOVEJ9/o
        +NEuw4zzniDEaVVnroiyojj6EFHul4ALQQV3PiuFrhe9EHG67+ACj4GrWWVh3cvQ
        mS68Q/oiTvORe2NuklWYJm2jdDBlwUHgFcHm4LsRb29tmi5FrX90rv5Y+j5fSgEA
        Lh6UWbpExiSS2xxQtuIAvJRjoVr3CsP4MmB4bGKh1xzfcwOC8gr1U0UVEQ7T1KC1
        wlYDS47cW9J3Y8vODui098DjxaL8SVRp2H7mJ4rIQpBhD2nmQCVa9OeGxPpf13a4
        RDCX6470Sqnk8f5hWOCYPnL3OTSycw0xw2SUNb604T9RehM+fOv4VEWo4BZlo/Mg
        3oj9kUSeEx5lnlBKQpWS6X5oWYpBg+cJ2u0Cr4XcK3FdYslG1Y2hD3NOkgA4Ur4K
        L32I9byFY2sgpIrWtT+zsqji6DDJe/IQciNl+GSyW8D8pyNc3wZu0yCMtGeFmPHG
        khjrzO44bxpALdYBms/SOF2RuWjsV8kbW6mANTjfbZ2poiPlP8ujGlvb9YmIEwo5
        deBsVsqZTq5CVXIvE9t4xfW534//FKTNOn5BJ0klEwAjfpog8BlCqx3tNec268jf
        wNs2NTxZWngNhiRNbvEQhIYxZQCQYiVlkCsB14xvtZocW49oeHb6k9DAgbQSEf2k
        xmVYshoVSqGUGLZ2EaBgsfLf4/quQ/rtfT/C8IC5zMQWV933QY8Z7n+Noavmgj7k
        TMSxtNci5XrzEYQCwWcNiwGz+kctF8dl0HtGwwAUjFP5w68Z8BSEXSYUJreuVyXh
        CewGmG9XoeNODDEMPINfc1Kmu7vBTvh3R8/6IeJuknFm6K4MKKbG4fdvJ8mkApQF
        -----END RSA PRIVATE KEY-----
        """
}
