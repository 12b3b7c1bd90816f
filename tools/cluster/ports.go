package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"
)

// Ports are taken from below the NodePorts (30000) and the kernel's ephemeral
// range (32768), so that neither occupies one while its component is down.
const (
	firstPort = 20000
	lastPort  = 29999
)

// choosePorts gives every name a port of its own that nobody listens on.
func choosePorts(names []string, free func(port int) bool) (map[string]int, error) {
	ports, taken := map[string]int{}, map[int]bool{}
	for _, name := range names {
		for tries := 0; ports[name] == 0; tries++ {
			if tries == 1000 {
				return nil, fmt.Errorf("no free port between %d and %d for %s", firstPort, lastPort, name)
			}
			port := firstPort + rand.IntN(lastPort-firstPort+1)
			if !taken[port] && free(port) {
				ports[name], taken[port] = port, true
			}
		}
	}
	return ports, nil
}

// portFreed allows some seconds to a process that was killed a moment ago.
func portFreed(port int) bool {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return poll(ctx, pollInterval, func() error {
		if !portFree(port) {
			return fmt.Errorf("port %d is taken", port)
		}
		return nil
	}) == nil
}

// portFree says whether the port can be listened on at every address of this machine.
func portFree(port int) bool {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", net.JoinHostPort("", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return listener.Close() == nil
}
