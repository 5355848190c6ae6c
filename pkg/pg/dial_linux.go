package pg

import (
	"strings"
	"syscall"
)

// tcpUserTimeout is TCP_USER_TIMEOUT, which the syscall package does not name.
const tcpUserTimeout = 0x12

// unacknowledgedMillis bounds how long sent bytes may stay unacknowledged before the kernel
// gives the connection up: keepalives are not sent while data waits for its acknowledgement.
const unacknowledgedMillis = 10_000

func boundUnacknowledged(network, _ string, c syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	var set error
	if err := c.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, unacknowledgedMillis)
	}); err != nil {
		return err
	}
	return set
}
