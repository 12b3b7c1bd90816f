package database

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
)

const (
	// longestPacket bounds one packet, in bytes: the driver allocates the length that the
	// packet's header announces.
	longestPacket = 256 << 10
	// manyColumns is the first byte of an answer with more than 250 columns. The driver
	// allocates an entry for each column that it announces, up to 2^64, and no query of this
	// package has more than four.
	manyColumns = 0xfc
	isError     = 0xff
	headerSize  = 4
)

// packets checks the packets of a server before the driver sees them.
//
// It also encrypts the connection if tls is not nil, because the checks need the decrypted
// packets: the driver logs in as at a socket that needs no TLS. In MariaDB's protocol, the
// client asks for TLS by a packet with the beginning of its login, and sends the login over
// TLS. As the driver does not know of this packet, the numbers of the following ones differ
// by one, until the first command, whose number is 0:
// https://mariadb.com/kb/en/connection/#connection-phase
type packets struct {
	net.Conn
	refusal  *refusal
	tls      *tls.Config // nil: no TLS, or TLS is used already
	greeted  bool
	shift    byte   // of the numbers of packets
	commands bool   // the next packet is the answer to a command
	ready    []byte // of the packet, read and not returned yet
	left     int    // of the packet, not read yet
}

// refusal keeps the error of a check, because the driver replaces errors of a connection.
type refusal struct{ cause atomic.Pointer[error] }

func (r *refusal) set(err error) error {
	r.cause.Store(&err)
	return err
}

// of returns the error of a check if there is one, and otherwise err.
func (r *refusal) of(err error) error {
	if r != nil {
		if cause := r.cause.Load(); cause != nil {
			return *cause
		}
	}
	return err
}

// Read returns bytes of one packet.
func (p *packets) Read(into []byte) (int, error) {
	if len(p.ready) == 0 && p.left == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	if len(p.ready) > 0 {
		n := copy(into, p.ready)
		p.ready = p.ready[n:]
		return n, nil
	}
	n, err := p.Conn.Read(into[:min(len(into), p.left)])
	p.left -= n
	return n, err
}

// next reads the header and the first byte of a packet; the greeting as a whole.
func (p *packets) next() error {
	header := make([]byte, headerSize, headerSize+1)
	if _, err := io.ReadFull(p.Conn, header); err != nil {
		return err
	}
	length := int(header[0]) | int(header[1])<<8 | int(header[2])<<16
	if length > longestPacket {
		return p.refusal.set(fmt.Errorf("the server announces a packet of %d bytes, and the operator accepts at most %d: check that the server is a MariaDB", length, longestPacket))
	}
	header[3] -= p.shift
	p.ready, p.left = header, length
	if length == 0 {
		return nil
	}
	read := 1
	if !p.greeted {
		read = length
	}
	p.ready = append(p.ready, make([]byte, read)...)
	p.left -= read
	payload := p.ready[headerSize:]
	if _, err := io.ReadFull(p.Conn, payload); err != nil {
		return err
	}
	if p.commands && payload[0] >= manyColumns && payload[0] != isError {
		return p.refusal.set(errors.New("the server announces an answer with more than 250 columns, which no query of the operator has: check that the server is a MariaDB"))
	}
	p.commands = false
	if !p.greeted && p.tls != nil && payload[0] != isError && !offersTLS(payload) {
		return p.refusal.set(mysql.ErrNoTLS)
	}
	p.greeted = true
	return nil
}

// offersTLS tells whether the server's capabilities in its greeting include TLS.
func offersTLS(greeting []byte) bool {
	_, afterVersion, _ := bytes.Cut(greeting[1:], []byte{0})
	const at = 4 + 8 + 1 // after the number of the connection, and a part of the salt
	return len(afterVersion) >= at+2 && binary.LittleEndian.Uint16(afterVersion[at:])&withTLS != 0
}

// withTLS is the capability of TLS, of a server and of a client.
const withTLS = 0x0800

// Write sends packets of the driver, which writes each as a whole.
func (p *packets) Write(data []byte) (int, error) {
	if len(data) < headerSize {
		return 0, io.ErrShortWrite
	}
	if data[3] == 0 {
		p.shift, p.commands = 0, true
	}
	if p.tls == nil && p.shift == 0 {
		return p.Conn.Write(data)
	}
	sent := bytes.Clone(data)
	if p.tls != nil {
		if err := p.secure(sent); err != nil {
			return 0, err
		}
	}
	sent[3] += p.shift
	return p.Conn.Write(sent)
}

// secure asks for TLS, and sets the capability in the login.
func (p *packets) secure(login []byte) error {
	const request = headerSize + 32 // capabilities, longest packet, collation
	if len(login) < request {
		return io.ErrShortWrite
	}
	login[headerSize+1] |= withTLS >> 8
	first := bytes.Clone(login[:request])
	first[0], first[1], first[2] = request-headerSize, 0, 0
	if _, err := p.Conn.Write(first); err != nil {
		return err
	}
	encrypted := tls.Client(p.Conn, p.tls)
	if err := encrypted.Handshake(); err != nil { //nolint:noctx // the driver closes the connection when its context ends
		return p.refusal.set(err)
	}
	p.Conn, p.tls, p.shift = encrypted, nil, 1
	return nil
}
