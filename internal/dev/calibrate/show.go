package main

import (
	"fmt"
	"io"

	"github.com/coditect/mapreduce/internal/outcome/eval"
	"github.com/coditect/mapreduce/internal/text/confidence"
)

// showCurves prints the points that were chosen, and on how many.
func showCurves(out io.Writer, curves map[confidence.Form]curve, chosen *set) {
	for _, form := range confidence.Forms() {
		fmt.Fprintf(out, "%s, chosen on %d:", form, len(chosen.sampleOf(form)))
		for _, p := range curves[form] {
			fmt.Fprintf(out, " %.2f→%.2f", p.sure, p.right)
		}
		fmt.Fprintln(out)
	}
}

// show prints how reliable the confidences of values and words of a set are.
func show(out io.Writer, title string, s *set, curves map[confidence.Form]curve) {
	fmt.Fprintf(out, "\n%s: %d pictures, of which %d have no text\n", title, len(s.pages), s.unread())
	program := func(f *found) float64 { return confidence.OfRecognition(f.form, f.sure) }
	chosen := func(f *found) float64 { return curves[f.form].at(f.sure) }
	for _, of := range []struct {
		name string
		all  []found
	}{{"values", s.values}, {"words", s.words}} {
		if len(of.all) == 0 {
			continue
		}
		showBySure(out, of.name, of.all)
		showReliability(out, of.name+" with the factors of the program", of.all, program)
		showReliability(out, of.name+" with the factors that were chosen", of.all, chosen)
	}
	showGrades(out, s.pages)
}

// showBySure prints how often what has a form is right, by how sure recognition was.
func showBySure(out io.Writer, name string, all []found) {
	fmt.Fprintf(out, "\n%s: how many, and the share of them that is right, by how sure recognition was\n\n| form | below 0.3 | 0.3 | 0.4 | 0.5 | 0.6 | 0.7 | 0.8 | 0.9 |\n|---|---|---|---|---|---|---|---|---|\n", name)
	for _, form := range confidence.Forms() {
		var bins [8]block
		for _, f := range ofForm(all, form) {
			b := &bins[max(min(int(f.sure*10), 9)-2, 0)]
			b.n++
			if f.right {
				b.right++
			}
		}

		fmt.Fprintf(out, "| %s |", form)
		for _, b := range bins {
			fmt.Fprintf(out, " %d: %.3f |", b.n, float64(b.right)/float64(max(b.n, 1)))
		}
		fmt.Fprintln(out)
	}
}

// showReliability prints a reliability table, and the calibration error of each field or form.
func showReliability(out io.Writer, name string, all []found, factor func(*found) float64) {
	judged := make([]eval.Judged, len(all))
	for i := range all {
		f := &all[i]
		field := f.field
		if field == "" {
			field = string(f.form)
		}
		judged[i] = eval.Judged{Field: field, Confidence: f.confidence(factor(f)), Right: f.right}
	}

	c := eval.Calibrate(judged)
	fmt.Fprintf(out, "\n%s: calibration error %.4f over %d; %v\n\n| confidence | how many | mean | right |\n|---|---|---|---|\n", name, c.Error, c.Values, c.Fields)
	for _, b := range c.Bins {
		fmt.Fprintf(out, "| %.1f–%.1f | %d | %.3f | %.3f |\n", b.From, b.To, b.Values, b.Confidence, b.Accuracy)
	}
}

// showGrades prints how often a quote of each grade is right, by how often the reader errs.
func showGrades(out io.Writer, pages []*page) {
	of, lines := quote(pages)
	if lines[asItIs] == 0 {
		return
	}

	fmt.Fprintf(out, "\n%d lines as they are, %d misread, %d made up, by the grade in recognised text; the share that is right if one line of ten, or three, is misread or made up\n\n", lines[asItIs], lines[misread], lines[madeUp])
	fmt.Fprintf(out, "| grade | as they are | misread | made up | right, 1 of 10 wrong | 3 of 10 |\n|---|---|---|---|---|---|\n")
	for _, g := range grades {
		n := of[g]
		fmt.Fprintf(out, "| %s | %d | %d | %d | %.3f | %.3f |\n", g, n[asItIs], n[misread], n[madeUp], rightOf(n, lines, 0.1), rightOf(n, lines, 0.3))
	}
}

// rightOf returns the share of quotes that is right if a reader errs so often, one half of it in each way.
func rightOf(n *[ways]int, lines [ways]int, errs float64) float64 {
	share := func(way int) float64 { return float64(n[way]) / float64(max(lines[way], 1)) }
	right, wrong := share(asItIs)*(1-errs), (share(misread)+share(madeUp))*errs/2
	if right+wrong == 0 {
		return 0
	}
	return right / (right + wrong)
}
