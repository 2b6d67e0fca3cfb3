package merge

import (
	"math/big"
	"strings"
)

// A decimal is an exact number, unscaled / 10^scale. The zero value is 0.
type decimal struct {
	unscaled big.Int
	scale    int
}

// addMultiple adds times × n. n is a number in the canonical form of api/schema.
func (d *decimal) addMultiple(n string, times int64) {
	whole, fraction, _ := strings.Cut(n, ".")

	v, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		return
	}

	v.Mul(v, big.NewInt(times))
	// Both get the larger scale, so that the digits can be added as they are.
	switch scale := len(fraction); {
	case scale > d.scale:
		d.unscaled.Mul(&d.unscaled, powerOfTen(scale-d.scale))
		d.scale = scale
	case scale < d.scale:
		v.Mul(v, powerOfTen(d.scale-scale))
	}

	d.unscaled.Add(&d.unscaled, v)
}

func powerOfTen(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// String returns the number in the canonical form of api/schema.
func (d *decimal) String() string {
	digits := new(big.Int).Abs(&d.unscaled).String()
	if missing := d.scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}

	whole, fraction := digits[:len(digits)-d.scale], strings.TrimRight(digits[len(digits)-d.scale:], "0")
	if fraction != "" {
		whole += "." + fraction
	}

	if d.unscaled.Sign() < 0 {
		whole = "-" + whole
	}
	return whole
}

// meanOver returns d / n as the nearest double.
func (d *decimal) meanOver(n int64) float64 {
	if n == 0 {
		return 0
	}
	f, _ := new(big.Rat).SetFrac(&d.unscaled, new(big.Int).Mul(powerOfTen(d.scale), big.NewInt(n))).Float64()
	return f
}
