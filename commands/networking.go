package commands

import (
	"fmt"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/go-connections/nat"
)

// parsePublish reads what --publish takes, in both of the forms of docker run:
// 127.0.0.1:8080:80/tcp, and target=80,published=8080,protocol=tcp.
func parsePublish(specs []string) (nat.PortMap, error) {
	short := make([]string, len(specs))
	for i, spec := range specs {
		var err error
		if short[i], err = shortPort(spec); err != nil {
			return nil, err
		}
	}
	_, bindings, err := nat.ParsePortSpecs(short)
	return bindings, err
}

// shortPort turns the long form into the short one.
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

// checkNetworks refuses networks that cannot be joined together: all but the
// bridge and those that users made stand alone.
func checkNetworks(names []string) error {
	for _, name := range names {
		mode := container.NetworkMode(name)
		if len(names) > 1 && !mode.IsUserDefined() && !mode.IsBridge() {
			return fmt.Errorf("conflicting options: --network %s and another --network", name)
		}
	}
	return nil
}
