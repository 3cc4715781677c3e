package commands

import "net"

// takeTurn takes a turn that only one process at a time can have, and returns how to give it back.
// A turn is an abstract socket: it is on no disk, and ends with its process.
func takeTurn(name string) (release func(), isFree bool) {
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + name, Net: "unixgram"})
	if err != nil {
		return nil, false
	}
	return func() { _ = socket.Close() }, true
}
