package observe

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"time"
)

// expiryOf returns when the first value of a Secret or ConfigMap expires; zero if none has a
// certificate.
func expiryOf(data map[string][]byte) (first time.Time) {
	for _, value := range data {
		if end := expiryOfPEM(value); !end.IsZero() && (first.IsZero() || end.Before(first)) {
			first = end
		}
	}
	return first
}

// expiryOfPEM returns when the certificates in a value expire. If a server's certificate is the
// first one, it counts and its chain does not, because clients may verify it along another chain.
// Of authorities, the last one counts: a bundle has the old authority beside the new one during a
// rotation, and one of hundreds of roots always expires soon. Junk is ignored.
func expiryOfPEM(value []byte) (last time.Time) {
	if !bytes.Contains(value, []byte("-----BEGIN CERTIFICATE-----")) {
		return last
	}
	for block, rest := pem.Decode(value); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if block.Type != "CERTIFICATE" || err != nil {
			continue
		}
		selfSigned := bytes.Equal(certificate.RawIssuer, certificate.RawSubject) // may be trusted like an authority
		if last.IsZero() && !certificate.IsCA && !selfSigned {
			return certificate.NotAfter
		}
		if certificate.NotAfter.After(last) {
			last = certificate.NotAfter
		}
	}
	return last
}
