package demo

// Cost is what one walk takes, counted where nobody looks on.
type Cost struct{}
