//go:build !linux

package pg

import "syscall"

// boundUnacknowledged does nothing where the kernel has no TCP_USER_TIMEOUT; keepalives remain.
func boundUnacknowledged(string, string, syscall.RawConn) error { return nil }
