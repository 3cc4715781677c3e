package commands

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
)

// addPort adds to bindings what one --publish says, in either of the forms of docker
// run: 127.0.0.1:8080:80/tcp, or target=80,published=8080,protocol=tcp.
func addPort(bindings *nat.PortMap, spec string) error {
	short, err := shortPort(spec)
	if err != nil {
		return err
	}
	mappings, err := nat.ParsePortSpec(short)
	if err != nil {
		return err
	}
	if *bindings == nil {
		*bindings = nat.PortMap{}
	}
	for _, m := range mappings {
		(*bindings)[m.Port] = append((*bindings)[m.Port], m.Binding)
	}
	return nil
}

// shortPort turns the long form of a port into the short one.
func shortPort(spec string) (string, error) {
	if !strings.Contains(spec, "=") {
		return spec, nil
	}
	fields := map[string]string{"protocol": "tcp"}
	for field := range strings.SplitSeq(spec, ",") {
		name, value, ok := strings.Cut(field, "=")
		switch {
		case !ok:
			return "", fmt.Errorf("%q in %q is not name=value", field, spec)
		case name != "target" && name != "published" && name != "protocol" && name != "mode": // a single engine has one mode
			return "", fmt.Errorf("%s= in %q: use target=, published= and protocol=", name, spec)
		}
		fields[name] = value
	}
	return fields["published"] + ":" + fields["target"] + "/" + fields["protocol"], nil
}

// checkNetworks refuses networks that a container cannot be in together: only the
// bridge and networks that users made go with others.
func checkNetworks(names []string) error {
	for _, name := range names {
		mode := container.NetworkMode(name)
		if len(names) > 1 && !mode.IsUserDefined() && !mode.IsBridge() {
			return fmt.Errorf("conflicting options: --network %s and another --network", name)
		}
	}
	return nil
}
