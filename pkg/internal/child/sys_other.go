//go:build !linux

package child

import "syscall"

// dieWithParent can't be had here; Mourn and the next start's clean-up remain.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
