package main_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"html"
)

// drawTrace draws a trace as SVG: a bar for each span, below its parent, in the colour of
// its process.
func drawTrace(trace []received) []byte {
	const row, left, width = 15, 330, 640
	children := make(map[string][]received)
	begun, ended := trace[0].GetStartTimeUnixNano(), uint64(0)
	for _, r := range trace {
		children[hex.EncodeToString(r.GetParentSpanId())] = append(children[hex.EncodeToString(r.GetParentSpanId())], r)
		begun, ended = min(begun, r.GetStartTimeUnixNano()), max(ended, r.GetEndTimeUnixNano())
	}
	colours := []string{"#4c6ef5", "#e8590c", "#2f9e44", "#9c36b5", "#1098ad", "#c2255c"}
	processes := make(map[string]string)
	var legend []string
	x := func(at uint64) float64 { return left + float64(at-begun)/float64(ended-begun)*width }
	var bars bytes.Buffer
	y := 0
	var draw func(parent string, depth int)
	draw = func(parent string, depth int) {
		for _, r := range children[parent] {
			process := fmt.Sprintf("%s %d", r.service, r.pid)
			if processes[process] == "" {
				processes[process] = colours[len(processes)%len(colours)]
				legend = append(legend, process)
			}
			y += row
			from, to := x(r.GetStartTimeUnixNano()), x(r.GetEndTimeUnixNano())
			name := r.GetName()
			if unit := r.attribute("coditect.unit.id"); unit != "" {
				name += " · " + unit
			}
			stroke := ""
			if r.GetStatus().GetCode() == 2 {
				stroke = ` stroke="#c92a2a" stroke-width="1.5" stroke-dasharray="3 2"`
			}
			fmt.Fprintf(&bars, `<text x="%d" y="%d">%s</text><rect x="%.1f" y="%d" width="%.1f" height="%d" rx="2" fill="%s"%s/>`+"\n",
				8+10*depth, y, html.EscapeString(name), from, y-9, max(2, to-from), row-5, processes[process], stroke)
			draw(hex.EncodeToString(r.GetSpanId()), depth+1)
		}
	}
	y = 30
	draw("", 0)
	var b bytes.Buffer
	height := y + 40 + 14*len(legend)
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="system-ui, sans-serif" font-size="10">`+"\n", left+width+20, height)
	fmt.Fprintf(&b, `<title>One trace of a job over all processes</title><rect width="100%%" height="100%%" fill="#fff"/><text x="8" y="18" font-size="13" font-weight="bold">One job, one trace: a client, two servers, three workers (%.1f s)</text>`+"\n", float64(ended-begun)/1e9)
	b.Write(bars.Bytes())
	for i, process := range legend {
		fmt.Fprintf(&b, `<rect x="8" y="%d" width="10" height="10" fill="%s"/><text x="24" y="%d">%s</text>`+"\n", y+20+14*i, processes[process], y+29+14*i, html.EscapeString(process))
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">dashed: a span that ended with an error, here the attempts of the worker that was killed</text></svg>`+"\n", left, y+29)
	return b.Bytes()
}
