//go:build unix

package pdf_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// BenchmarkPages reads a document of 100 pages, beside what pdftotext takes for it.
func BenchmarkPages(b *testing.B) {
	sheets := make([]sheet, 100)
	for i := range sheets {
		for k := range 50 {
			sheets[i].lines = append(sheets[i].lines, line{50, float64(750 - 14*k), "What stands on a page of running text in a document"})
		}
	}
	data := makeFile("", sheets...)
	for b.Loop() {
		if _, err := parse(b.Context(), shared, data); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "pages/s")
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(own.Maxrss)/1024, "MiB") // of the whole process, PDFium's code included
	if path, err := exec.LookPath("pdftotext"); err == nil {
		file := filepath.Join(b.TempDir(), "a.pdf")
		if err := os.WriteFile(file, data, 0o600); err != nil {
			b.Fatal(err)
		}
		run := exec.CommandContext(b.Context(), path, file, os.DevNull)
		begin := time.Now()
		if err := run.Run(); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(100/time.Since(begin).Seconds(), "pdftotext-pages/s")
		// The kernel counts this process to what it has begun itself, so another begins it.
		if out, err := exec.CommandContext(b.Context(), "time", "-f", "%M", path, file, os.DevNull).CombinedOutput(); err == nil {
			if kilobytes, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err == nil {
				b.ReportMetric(kilobytes/1024, "pdftotext-MiB")
			}
		}
	}
}
