package sheet_test

import (
	"testing"

	"github.com/coditect/mapreduce/internal/document/sheet"
)

// TestConditions: the section of a format whose condition a number meets shows it. Where programs
// differ in what they choose, the number stands as it is stored.
func TestConditions(t *testing.T) {
	const large, equal, three = `[>=100000]0.000\ \<;[Red]0.000\ \>`, `[Red][=50]General;[Blue]000`, `[<=-25]"low ;"0;[>=25]"high "0;"none "0`
	var f sheet.Formatter
	for _, test := range []struct {
		number float64
		code   string
		want   string
	}{
		{12345.6789, large, "12345.679 > (=12345.6789)"},
		{123456.789, large, "123456.789 <"},
		{12345.6789, `[>=100000]0.000\ \";[Red]0.000\ \<\ \>\ \"\ \&\ \'\ `, `12345.679 < > " & ' (=12345.6789)`},
		{50, equal, "50"},
		{51, equal, "051"},
		{50, `[<>50]General;000`, "050"},
		{51, `[<>50]General;000`, "51"},
		{30, three, "high 30"},
		{25, three, "high 25"},
		{24, three, "none 24"},
		{1500000, `[>=1000000]0.0,,"M";[>=1000]0.0,"K";0`, "1.5M (=1500000)"},
		{2500, `[>=1000000]0.0,,"M";[>=1000]0.0,"K";0`, "2.5K (=2500)"},
		{7, `[>=1000000]0.0,,"M";[>=1000]0.0,"K";0`, "7"},
		{7, `[>100]"much "0;"debt "0;"little "0`, "7"}, // second or third section, as the program has it
		{200, `[>100]"much "0;"debt "0;"little "0`, "much 200"},
		{7, `[>100]0.00`, "7"}, // shown as ####
		{5, `[Red]0.00;[<0]0.0`, "5"},
		{1, `"[more; >5] "0;"less"`, "1"}, // a text
		{12345.5, `[$-409]#,##0.00`, "12,345.50"},
		{0.5, `[<1]h:mm;d/m/yyyy`, "12:00 (=12:00:00)"},
		{44197, `[<1]h:mm;d/m/yyyy`, "1/1/2021 (=2021-01-01)"},
		{3, `[=3];0`, "3"}, // which is not shown
		{2958465, `yyyy-mm-dd`, "9999-12-31"},
		{2958466, `yyyy-mm-dd`, "2958466"}, // a number of no day, shown as ####
		{7, `[>5`, "7"},
		{7, `[>5]`, "7"},
		{7, `[>5]\`, "7"},
	} {
		if got := f.Value(test.number, test.code, false); got != test.want {
			t.Errorf("%v by %s: got %q, want %q", test.number, test.code, got, test.want)
		}
	}
}

// TestDatesFrom1904: the first days that are counted from 1904 show as those of 1904, and times and
// spans of time as ever, also by a formatter that has shown others.
func TestDatesFrom1904(t *testing.T) {
	var f sheet.Formatter
	for _, test := range []struct {
		number   float64
		code     string
		from1904 bool
		want     string
	}{
		{1, "yyyy-mm-dd", false, "1900-01-01"},
		{1, "yyyy-mm-dd", true, "1904-01-02"},
		{0, "d.m.yyyy", true, "1.1.1904 (=1904-01-01)"},
		{0, `d.m.yyyy;@`, true, "1.1.1904 (=1904-01-01)"},
		{0, sheet.BuiltinFormat("14"), true, "01-01-04 (=1904-01-01)"},
		{0, sheet.BuiltinFormat("20"), true, "00:00 (=00:00:00)"},
		{0, "mmmm", true, "January (=1904-01-01)"},
		{0, `h:mm" day"`, true, "0:00 day (=00:00:00)"},
		{0.5, "d.m.yyyy h:mm", true, "1.1.1904 12:00 (=1904-01-01T12:00:00)"},
		{0, "d.m.yyyy", false, "0.1.1900 (=00:00:00)"}, // which is no day
		{2957003, "d.m.yyyy", true, "31.12.9999 (=9999-12-31)"},
		{2957004, "d.m.yyyy", true, "2957004"}, // a number of no day
		{11, "yyyy-mm-dd", true, "1904-01-12"},
		{59, "d.m.yyyy", true, "29.2.1904 (=1904-02-29)"},
		{60, "d.m.yyyy", true, "1.3.1904 (=1904-03-01)"},
		{11111, "yyyy-mm-dd", true, "1934-06-03"},
		{0.5, "h:mm", true, "12:00 (=12:00:00)"},
		{1.25, "[h]:mm", true, "30:00 (=PT30H)"},
		{1.5, "0.0", true, "1.5"},
		{11, sheet.BuiltinFormat("14"), true, "01-12-04 (=1904-01-12)"},
	} {
		if got := f.Value(test.number, test.code, test.from1904); got != test.want {
			t.Errorf("%v by %q, from 1904: %t: got %q, want %q", test.number, test.code, test.from1904, got, test.want)
		}
	}
}

// TestNoDates: numbers that are no dates stand as they are stored where a format of dates does not show
// them.
func TestNoDates(t *testing.T) {
	var f sheet.Formatter
	for _, test := range []struct {
		number float64
		code   string
		want   string
	}{
		{-5, `d.m.yyyy;;"none"`, "-5"},
		{-5, `d.m.yyyy;"before"`, "before (=-5)"},
		{-5, "d.m.yyyy", "-5"},
		{3e6, "h:mm", "3000000"},
	} {
		for _, from1904 := range []bool{false, true} {
			if got := f.Value(test.number, test.code, from1904); got != test.want {
				t.Errorf("%v by %s, from 1904: %t: got %q, want %q", test.number, test.code, from1904, got, test.want)
			}
		}
	}
}

// TestPartsOfSeconds: a time whose format shows a part of a second shows it rounded, as programs do, and is
// stored with it.
func TestPartsOfSeconds(t *testing.T) {
	const day = 24 * 3600
	var f sheet.Formatter
	for _, test := range []struct {
		number float64
		code   string
		want   string
	}{
		{95415.789 / day, "[h]:mm:ss.00", "26:30:15.79 (=PT26H30M15.789S)"},
		{59.996 / day, "[h]:mm:ss.00", "0:01:00.00 (=PT59.996S)"},
		{60.25 / day, "[h]:mm:ss.00", "0:01:00.25 (=PT1M0.25S)"},
		{3600.0 / day, "[h]:mm:ss.00", "1:00:00.00 (=PT1H)"},
		{62.25 / day, "[ss].00", "62.25 (=PT1M2.25S)"},
		{45015.789 / day, "hh:mm:ss.000", "12:30:15.789"},
		{62.5 / day, sheet.BuiltinFormat("47"), "01:02.5 (=00:01:02.5)"},
		{100 + 95415.789/day, "[h]:mm:ss.00", "2426:30:15.79 (=PT2426H30M15.789S)"},
		{45355 + 18367.89/day, "yyyy-mm-dd hh:mm:ss.000", "2024-03-04 05:06:07.890"},
		{45355 + 18367.89/day, "d.m.yy h:mm:ss.0", "4.3.24 5:06:07.9 (=2024-03-04T05:06:07.89)"},
		{45355 + 86399.99/day, "d.m.yy h:mm:ss.0", "5.3.24 0:00:00.0 (=2024-03-04T23:59:59.99)"},
		{45355, "d.m.yy h:mm:ss.000", "4.3.24 0:00:00.000 (=2024-03-04)"},
		{45355 + 18367.89/day, "h:mm:ss AM/PM", "5:06:08 AM (=2024-03-04T05:06:08)"},
		{95415.789 / day, "[h]:mm:ss", "26:30:16 (=PT26H30M16S)"},
		{95415.789 / day, `[h]:mm:ss.0" s"`, "26:30:15.8 s (=PT26H30M15.789S)"},
		{95415.789 / day, `[h]:mm:ss.00;-[h]:mm:ss.00`, "26:30:15.79 (=PT26H30M15.789S)"},
	} {
		if got := f.Value(test.number, test.code, false); got != test.want {
			t.Errorf("%v by %s: got %q, want %q", test.number, test.code, got, test.want)
		}
	}
}
