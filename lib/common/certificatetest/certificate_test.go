package certificatetest

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"
)

func TestSignIdentifiesTheKeyOfTheAuthority(t *testing.T) {
	authority := NewAuthority(t)
	signed, _ := authority.Sign(t, time.Now().Add(time.Hour), "a.example.org")
	parsed := func(content []byte) *x509.Certificate {
		block, _ := pem.Decode(content)
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		return certificate
	}
	if wanted, got := parsed(authority.PEM).SubjectKeyId, parsed(signed).AuthorityKeyId; len(wanted) == 0 || !bytes.Equal(got, wanted) {
		t.Errorf("the certificate identifies the key %x of its authority, want %x", got, wanted)
	}
}
