package child

import "syscall"

func dieWithParent(a *syscall.SysProcAttr, s syscall.Signal) { a.Pdeathsig = s }
