package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// validity is longer than the life of any development cluster.
const validity = 10 * 365 * 24 * time.Hour

// authority issues certificates into its folder, each pair of files once.
type authority struct {
	dir  string
	name string
	cert *x509.Certificate
	key  crypto.PrivateKey
}

// certificate describes a certificate that an authority issues.
type certificate struct {
	name   string // of its two files
	user   string // common name: the Kubernetes user of a client certificate
	groups []string
	hosts  []string // names and addresses of a server certificate; none for a client
}

// openAuthority reads the authority's files, and creates them the first time.
func openAuthority(dir, name string) (*authority, error) {
	a := &authority{dir: dir, name: name}
	if _, err := os.Stat(a.path(name, "crt")); err != nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			return nil, err
		}
		// Each authority has its own name: a client selects its certificate by the issuer that the server requests.
		template := newCertificate("asterism "+filepath.Base(dir), nil)
		template.IsCA, template.BasicConstraintsValid = true, true
		template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
		a.cert, a.key = template, key
		if err := a.sign(name, template, key); err != nil {
			return nil, err
		}
	}
	return a, a.read()
}

func (a *authority) path(name, extension string) string {
	return filepath.Join(a.dir, name+"."+extension)
}

func (a *authority) read() error {
	pair, err := tls.LoadX509KeyPair(a.path(a.name, "crt"), a.path(a.name, "key"))
	if err != nil {
		return fmt.Errorf("authority in %s: %w", a.dir, err)
	}
	a.cert, a.key = pair.Leaf, pair.PrivateKey
	return nil
}

func newCertificate(user string, groups []string) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{CommonName: user, Organization: groups},
		NotBefore:    now.Add(-time.Hour),
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// issue creates NAME.key and NAME.crt unless they exist.
func (a *authority) issue(c certificate) error {
	if _, err := os.Stat(a.path(c.name, "crt")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := newCertificate(c.user, c.groups)
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(c.hosts) > 0 {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, host := range c.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, host)
		}
	}
	return a.sign(c.name, template, key)
}

// sign writes the key before the certificate, so that a certificate always has its key.
func (a *authority) sign(name string, template *x509.Certificate, key *ecdsa.PrivateKey) error {
	signed, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return fmt.Errorf("sign certificate %s: %w", name, err)
	}
	if err := writeKey(a.path(name, "key"), key); err != nil {
		return err
	}
	return writeFile(a.path(name, "crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o644)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writeFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

// writeServiceAccountKey creates the key that signs service-account tokens unless it exists.
func writeServiceAccountKey(path string) error {
	if _, err := os.Stat(path); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	return writeKey(path, key)
}

// kubeconfig returns the kubeconfig of a client certificate.
func (a *authority) kubeconfig(server, name string) ([]byte, error) {
	const cluster = "asterism"
	config := clientcmdapi.NewConfig()
	config.CurrentContext = cluster
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthority: a.path(a.name, "crt")}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificate: a.path(name, "crt"), ClientKey: a.path(name, "key")}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	if err := clientcmdapi.FlattenConfig(config); err != nil { // the content of the files
		return nil, err
	}
	return clientcmd.Write(*config)
}
