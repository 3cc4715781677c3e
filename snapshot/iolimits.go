package snapshot

import (
	"slices"

	"github.com/docker/docker/api/types/blkiodev"
)

// throttles are the lists of limits on the I/O of devices, without the weights.
func (sp *spec) throttles() []*[]*blkiodev.ThrottleDevice {
	h := &sp.host
	return []*[]*blkiodev.ThrottleDevice{&h.BlkioDeviceReadBps, &h.BlkioDeviceWriteBps, &h.BlkioDeviceReadIOps, &h.BlkioDeviceWriteIOps}
}

// limitedDevices are the host's devices whose I/O is limited. The engine looks
// for them when it starts the container.
func (sp *spec) limitedDevices() []string {
	var paths []string
	for _, d := range sp.host.BlkioWeightDevice {
		if d != nil {
			paths = append(paths, d.Path)
		}
	}
	for _, list := range sp.throttles() {
		for _, d := range *list {
			if d != nil {
				paths = append(paths, d.Path)
			}
		}
	}
	return paths
}

// dropLimits leaves out every limit on a device.
func (sp *spec) dropLimits(path string) {
	sp.host.BlkioWeightDevice = slices.DeleteFunc(sp.host.BlkioWeightDevice, func(d *blkiodev.WeightDevice) bool { return d != nil && d.Path == path })
	for _, list := range sp.throttles() {
		*list = slices.DeleteFunc(*list, func(d *blkiodev.ThrottleDevice) bool { return d != nil && d.Path == path })
	}
}
