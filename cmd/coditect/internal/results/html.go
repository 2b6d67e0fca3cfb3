package results

import (
	"context"
	_ "embed"
	"html/template"
)

//go:embed report.html.tmpl
var htmlText string

// htmlTemplate escapes whatever comes from documents and models by where it
// stands.
var htmlTemplate = template.Must(template.New("report").Funcs(template.FuncMap{
	"sources": sourcesOf,
	"sure":    confidenceOf,
	"columns": func() []string { return statisticsColumns },
	"add":     func(a, b int) int { return a + b },
}).Parse(htmlText))

// html writes report.html.
func (w *writer) html(context.Context) error {
	v, err := w.report.view()
	if err != nil {
		return err
	}
	return w.dir.fill("report.html", func(out *file) error { return htmlTemplate.Execute(out, v) })
}
