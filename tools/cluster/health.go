package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"asterism.dev/tools/internal/process"
)

// get returns a check that a component answers the administrator's request with 200.
func (c *cluster) get(url string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		return c.read(ctx, url, nil)
	}
}

// plain returns a check of a health endpoint on loopback without TLS.
func (c *cluster) plain(port, path string) func(ctx context.Context) error {
	return c.get(fmt.Sprintf("http://%s:%d%s", loopback, c.state.Ports[port], path))
}

// read sends a request as the administrator and decodes the JSON response if `into` is set.
func (c *cluster) read(ctx context.Context, url string, into any) error {
	client, err := c.httpClient()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", url, response.Status, process.LastLines(string(body), 3))
	}
	if into != nil {
		return json.Unmarshal(body, into)
	}
	return nil
}

// httpClient has a client certificate for each authority: etcd trusts a separate one.
func (c *cluster) httpClient() (*http.Client, error) {
	if c.client != nil {
		return c.client, nil
	}
	roots := x509.NewCertPool()
	var pairs []tls.Certificate
	for _, names := range [][2]string{{"ca.crt", adminName}, {"etcd/ca.crt", "etcd/etcd"}} {
		authority, err := os.ReadFile(c.pki(names[0]))
		if err != nil {
			return nil, err
		}
		roots.AppendCertsFromPEM(authority)
		pair, err := tls.LoadX509KeyPair(c.pki(names[1]+".crt"), c.pki(names[1]+".key"))
		if err != nil {
			return nil, err
		}
		pairs = append(pairs, pair)
	}
	c.client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: pairs, MinVersion: tls.VersionTLS12},
	}}
	return c.client, nil
}
