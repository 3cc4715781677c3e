package runconfig

import (
	"slices"

	"github.com/docker/docker/api/types/blkiodev"
)

// throttles are the lists of limits on the I/O of devices, without the weights.
func (sp *Spec) throttles() []*[]*blkiodev.ThrottleDevice {
	h := &sp.Host
	return []*[]*blkiodev.ThrottleDevice{&h.BlkioDeviceReadBps, &h.BlkioDeviceWriteBps, &h.BlkioDeviceReadIOps, &h.BlkioDeviceWriteIOps}
}

// limitedDevices are the host's devices whose I/O is limited. The engine looks
// for them when it starts the container.
func (sp *Spec) limitedDevices() []string {
	var paths []string
	for _, d := range sp.Host.BlkioWeightDevice {
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
func (sp *Spec) dropLimits(path string) {
	sp.Host.BlkioWeightDevice = slices.DeleteFunc(sp.Host.BlkioWeightDevice, func(d *blkiodev.WeightDevice) bool { return d != nil && d.Path == path })
	for _, list := range sp.throttles() {
		*list = slices.DeleteFunc(*list, func(d *blkiodev.ThrottleDevice) bool { return d != nil && d.Path == path })
	}
}
