package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs certificates of servers.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func newAuthority(name string) authority {
	GinkgoHelper()
	key := newKey()
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	Expect(err).NotTo(HaveOccurred())
	return authority{certificate: certificate, key: key}
}

// pem returns the authority's own certificate.
func (a authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.certificate.Raw}))
}

// sign returns the content of a server's TLS Secret for these host names.
func (a authority) sign(notAfter time.Time, hosts ...string) map[string]string {
	GinkgoHelper()
	key := newKey()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: hosts[0]}, DNSNames: hosts,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: notAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	Expect(err).NotTo(HaveOccurred())
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	Expect(err).NotTo(HaveOccurred())
	return map[string]string{
		"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: signed})),
		"tls.key": string(encoded),
	}
}

func newKey() *ecdsa.PrivateKey {
	GinkgoHelper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	Expect(err).NotTo(HaveOccurred())
	return key
}
