package registrationtest

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"asterism.dev/lib/registration/remote"
)

// Servers of tests listen on the loopback interface.
func init() { remote.AllowAnyServer = true } //nolint:gochecknoinits // see above

// ResolveServices resolves the DNS name of every Kubernetes Service, such as
// mariadb.openstack.svc.cluster.local, to the loopback address, and no other name, until
// the test ends. The port of a Service is then the port of a server of the test.
func ResolveServices(t testing.TB) {
	t.Helper()
	var config net.ListenConfig
	server, err := config.ListenPacket(context.Background(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		answerNames(server)
	}()
	before := net.DefaultResolver
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}}
	t.Cleanup(func() {
		net.DefaultResolver = before
		_ = server.Close()
		<-ended
	})
}

func answerNames(server net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		size, client, err := server.ReadFrom(buffer)
		if err != nil {
			return
		}
		var query dnsmessage.Message
		if query.Unpack(buffer[:size]) != nil || len(query.Questions) != 1 {
			continue
		}
		answer := answerTo(query)
		if packed, err := answer.Pack(); err == nil {
			_, _ = server.WriteTo(packed, client)
		}
	}
}

func answerTo(query dnsmessage.Message) dnsmessage.Message {
	question := query.Questions[0]
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: query.ID, Response: true, RCode: dnsmessage.RCodeNameError}, Questions: query.Questions}
	if !strings.HasSuffix(question.Name.String(), ".svc.cluster.local.") {
		return answer
	}
	answer.RCode = dnsmessage.RCodeSuccess
	if question.Type == dnsmessage.TypeA {
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: question.Name, Type: question.Type, Class: question.Class, TTL: 1},
			Body:   &dnsmessage.AResource{A: [4]byte{127, 0, 0, 1}},
		}}
	}
	return answer
}

// Forward forwards connections from one address to another, until stop is called or the test
// ends.
func Forward(t testing.TB, from, to string) (stop func()) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(context.Background(), "tcp", from)
	if err != nil {
		t.Fatal(err)
	}
	stop = func() { _ = listener.Close() }
	t.Cleanup(stop)
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(client, to)
		}
	}()
	return stop
}

func forward(client net.Conn, to string) {
	defer client.Close() //nolint:errcheck // copying reports no errors either
	server, err := new(net.Dialer).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer server.Close() //nolint:errcheck // copying reports no errors either
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}
