package eval

import "math"

// A Calibration tells whether confidences are reliable: of the values with a
// confidence of 0.8, eight in ten should be right.
type Calibration struct {
	Values int                `json:"values"`           // values that have a confidence and were judged
	Error  float64            `json:"error"`            // expected calibration error: the mean distance, weighted by values
	Bins   []Bin              `json:"bins"`             // the reliability table; empty bins are left out
	Fields map[string]float64 `json:"fields,omitempty"` // the error of each field alone
}

// A Bin is the values whose confidence is in [From, To), or [From, To] for the
// last.
type Bin struct {
	From       float64 `json:"from"`
	To         float64 `json:"to"`
	Values     int     `json:"values"`
	Confidence float64 `json:"confidence"` // mean
	Accuracy   float64 `json:"accuracy"`   // share of them that is right
}

// A Judged is a value that was compared with the truth.
type Judged struct {
	Field      string
	Confidence float64
	Right      bool
}

// bins is the number of bins, all of equal width.
const bins = 10

// Calibrate computes the calibration of values.
func Calibrate(all []Judged) Calibration {
	fields := map[string][]Judged{}
	for _, j := range all {
		fields[j.Field] = append(fields[j.Field], j)
	}

	c := reliabilityTable(all)
	c.Fields = make(map[string]float64, len(fields))
	for name, part := range fields {
		c.Fields[name] = reliabilityTable(part).Error
	}

	return c
}

func reliabilityTable(all []Judged) Calibration {
	var table [bins]Bin
	for _, j := range all {
		b := &table[binOf(j.Confidence)]
		b.Values++
		b.Confidence += j.Confidence
		if j.Right {
			b.Accuracy++
		}
	}

	// Sums become means, bin by bin.
	c := Calibration{Values: len(all), Bins: []Bin{}}

	for i, b := range table {
		if b.Values == 0 {
			continue
		}

		n := float64(b.Values)
		b.From, b.To = float64(i)/bins, float64(i+1)/bins
		b.Confidence, b.Accuracy = roundMicro(b.Confidence/n), roundMicro(b.Accuracy/n)
		c.Error += math.Abs(b.Confidence-b.Accuracy) * n / float64(len(all))
		c.Bins = append(c.Bins, b)
	}

	c.Error = roundMicro(c.Error)
	return c
}

// roundMicro removes digits that depend on the order of summation.
func roundMicro(x float64) float64 { return math.Round(x*1e6) / 1e6 }

func binOf(confidence float64) int {
	if !(confidence > 0) { // also for NaN
		return 0
	}
	return min(int(confidence*bins), bins-1)
}
