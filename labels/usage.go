package labels

import (
	"errors"
	"strconv"
)

// maxUsage is far above what can be used of anything; it tells percents from parts.
const maxUsage = 10

// CheckUsage refuses what is not a part of a whole: from 0, and 1 is all of it.
func CheckUsage(usage float64) error {
	if !(usage >= 0 && usage <= maxUsage) { // also if it is no number
		return errors.New("use a part of the whole, as in 0.91")
	}
	return nil
}

func encodeUsage(usage *float64) string {
	if usage == nil {
		return ""
	}
	return strconv.FormatFloat(*usage, 'f', -1, 64)
}

func (d *decoder) usage(key string) *float64 {
	text := d.text(key)
	if text == "" {
		return nil
	}
	usage, err := strconv.ParseFloat(text, 64)
	if err != nil || CheckUsage(usage) != nil || encodeUsage(&usage) != text {
		d.fail(key, errors.New("not a part of a whole"))
		return nil
	}
	return &usage
}

// usageLow refuses one without a usage before it.
func (d *decoder) usageLow() *float64 {
	low := d.usage(KeyUsageLow)
	if low != nil && d.text(KeyUsage) == "" {
		d.fail(KeyUsageLow, errors.New("there is no usage"))
	}
	return low
}
