package infer

import (
	"regexp"
	"slices"
	"strings"

	"github.com/coditect/mapreduce/api/schema/format"
)

// sameWords are words of labels that mean the same, folded, by the one that stands for them. What a thing is called does
// not tell its label from that of another document: an invoice has a number, whoever calls it a bill.
var sameWords = map[string]string{
	"no": "number", "nr": "number", "num": "number", "nummer": "number", "numero": "number", "n": "number",
	"bill": "invoice", "rechnung": "invoice", "rechnungs": "invoice", "factura": "invoice", "facture": "invoice", "fattura": "invoice",
	"faktura": "invoice", "fatura": "invoice", "factuur": "invoice",
	"supplier": "seller", "vendor": "seller", "verkäufer": "seller", "lieferant": "seller", "fournisseur": "seller", "vendeur": "seller",
	"vendedor": "seller", "proveedor": "seller", "fornitore": "seller", "sprzedawca": "seller",
	"datum": "date", "fecha": "date", "data": "date", "dated": "date", "issued": "date",
	"order": "order", "auftrag": "order", "auftrags": "order", "bestell": "order", "bestellung": "order", "pedido": "order", "commande": "order",
	"customer": "customer", "kunden": "customer", "kunde": "customer", "cliente": "customer", "client": "customer",
	"due": "due", "fällig": "due", "vencimiento": "due", "echeance": "due",
	"tax": "tax", "vat": "tax", "mwst": "tax", "ust": "tax", "tva": "tax", "iva": "tax", "gst": "tax",
}

// ends are what the words of one language grow together with.
var ends = []string{"nummer", "nr", "datum", "betrag"}

// bills end the words for kinds of invoices: what an invoice is for does not tell its number from that of another.
var bills = []string{"rechnung", "rechnungs"}

// kindCode is the code of a kind of document behind its name.
var kindCode = regexp.MustCompile(` ?\(\d{1,6}\) ?`)

// named are the things whose name stands before their number alone, as in Invoice 4711.
var named = []string{"invoice", "order"}

// namesThing reports whether a label is the name of a thing that has a number, and says nothing else.
func namesThing(label string) bool { return slices.Contains(named, meaningOf(label)) }

// emptyWords tell nothing.
var emptyWords = []string{"of", "the", "de", "la", "le", "du", "des", "der", "die", "das", "del", "issue", "your", "our", "ihre", "unsere"}

// totals are the words of labels of what is to be paid altogether; with one that says so, all words of the label are
// of these.
var (
	totals     = []string{"total", "due", "balance", "gesamt", "gesamtsumme", "endbetrag", "payable"}
	withTotals = []string{"amount", "grand", "invoice", "sum", "summe", "betrag", "net", "importe", "montant", "ttc", "to", "pay", "incl", "including", "tax", "now"}
)

// meaningOf returns what labels have in common that mean the same. That of two others is never the same by chance:
// words that are in no list stand for themselves.
func meaningOf(label string) string {
	var words []string
	label = kindCode.ReplaceAllString(strings.ReplaceAll(label, "#", " number "), " ")
	for _, word := range strings.FieldsFunc(format.Fold(label), notWord) {
		for _, end := range ends {
			if head, grown := strings.CutSuffix(word, end); grown && head != "" {
				words, word = append(words, head), end
			}
		}
		words = append(words, word)
	}

	for i, word := range words {
		for _, end := range bills {
			if strings.HasSuffix(word, end) {
				words[i] = end
			}
		}
	}
	for i, word := range words {
		if same := sameWords[word]; same != "" {
			words[i] = same
		}
	}
	words = slices.DeleteFunc(words, func(w string) bool { return slices.Contains(emptyWords, w) })

	isTotal := slices.ContainsFunc(words, func(w string) bool { return slices.Contains(totals, w) })
	isOther := slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(totals, w) && !slices.Contains(withTotals, w) })
	if isTotal && !isOther {
		return "total"
	}
	if len(words) == 0 {
		return label
	}
	slices.Sort(words)
	return strings.Join(slices.Compact(words), " ")
}

// together returns the observations with those put together that mean the same and hardly ever stand in one document:
// whose labels differ as their documents are from different hands. Loose are those with nothing but a blank between label
// and value.
func together(sure, loose []*observation) []*observation {
	var merged []*observation
	index := make(map[string]*observation)
	add := func(own observation, of string) {
		had := index[of]
		if had != nil && own.isBeside(had) {
			had.join(&own)
			return
		}
		own.labels = []string{own.label}
		merged = append(merged, &own)
		if had == nil {
			index[of] = &own
		}
	}

	for _, o := range sure {
		own := *o
		own.sure = true
		add(own, meaningOf(o.label))
	}
	for _, o := range loose {
		own, of := *o, meaningOf(o.label)
		if own.code = namesThing(o.label); own.code {
			of = meaningOf(o.label + " number")
		}
		add(own, of)
	}
	return merged
}

// isBeside reports whether two labels stand in different documents, but for a tenth, with values of one kind.
func (o *observation) isBeside(other *observation) bool {
	shared := 0
	for _, d := range o.in {
		if _, both := slices.BinarySearch(other.in, d); both {
			shared++
		}
	}
	a, b := o.field().kind, other.field().kind
	return 10*shared <= min(len(o.in), len(other.in)) && a.typ == b.typ && a.format == b.format
}

// join adds another label to one that means the same. The one that more documents have gives the name.
func (o *observation) join(other *observation) {
	if !slices.ContainsFunc(o.labels, func(l string) bool { return strings.EqualFold(l, other.label) }) {
		o.labels = append(o.labels, other.label)
	}

	if other.documents > o.most && (other.sure || !o.sure) && !other.code {
		o.label, o.most = other.label, other.documents
	}

	o.in = append(slices.Clone(o.in), other.in...)
	slices.Sort(o.in)
	o.documents += other.documents
	o.count += other.count
	o.values = append(slices.Clone(o.values), other.values[:min(len(other.values), maxObserved-min(maxObserved, len(o.values)))]...)
}
