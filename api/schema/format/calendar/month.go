package calendar

import (
	"strings"

	"github.com/coditect/mapreduce/api/schema/format/internal/scan"
)

// A monthName is how a language calls a month, in the forms in which it stands
// in dates.
type monthName struct {
	month   int
	english bool // such names may stand before the day: March 18, 2001
}

// monthTable are the names of months, the twelve of a language separated by
// spaces, several forms of one by bars. Abbreviations are without their point.
var monthTable = [...]string{
	"january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sep|sept october|oct november|nov december|dec",
	"januar|jänner|jän februar|feber märz|mär|mrz|maerz april|apr mai juni|jun juli|jul august|aug september|sep|sept oktober|okt november|nov dezember|dez",
	"janvier|janv février|févr|fevrier|fév mars avril|avr mai juin juillet|juil août|aout septembre|sept octobre|oct novembre|nov décembre|déc|decembre",
	"enero|ene febrero|feb marzo|mar abril|abr mayo|may junio|jun julio|jul agosto|ago septiembre|setiembre|sep|sept octubre|oct noviembre|nov diciembre|dic",
	"janeiro|jan fevereiro|fev março|mar|marco abril|abr maio|mai junho|jun julho|jul agosto|ago setembro|set outubro|out novembro|nov dezembro|dez",
	"gennaio|gen febbraio|feb marzo|mar aprile|apr maggio|mag giugno|giu luglio|lug agosto|ago settembre|set|sett ottobre|ott novembre|nov dicembre|dic",
	"januari|jan februari|feb maart|mrt april|apr mei juni|jun juli|jul augustus|aug september|sep|sept oktober|okt november|nov december|dec",
	"januari|jan februari|feb mars|mar april|apr maj juni|jun juli|jul augusti|aug september|sep|sept oktober|okt november|nov december|dec",
	"januar|jan februar|feb marts|mars april|apr maj|mai juni|jun juli|jul august|aug september|sep|sept oktober|okt november|nov december|desember|des",
	"tammikuuta helmikuuta maaliskuuta huhtikuuta toukokuuta kesäkuuta heinäkuuta elokuuta syyskuuta lokakuuta marraskuuta joulukuuta",
	"stycznia|styczeń lutego|luty marca|marzec kwietnia|kwiecień maja|maj czerwca|czerwiec lipca|lipiec sierpnia|sierpień września|wrzesień października|październik listopada|listopad grudnia|grudzień",
	"ledna|leden února|únor března|březen dubna|duben května|květen června|červen července|červenec srpna|srpen září října|říjen listopadu|listopad prosince|prosinec",
	"января|январь|янв февраля|февраль|фев марта|март|мар апреля|апрель|апр мая|май июня|июнь|июн июля|июль|июл августа|август|авг сентября|сентябрь|сен октября|октябрь|окт ноября|ноябрь|ноя декабря|декабрь|дек",
	"січня лютого березня квітня травня червня липня серпня вересня жовтня листопада грудня",
	"ocak şubat mart nisan mayıs haziran temmuz ağustos eylül ekim kasım aralık",
	"január|jan február|feb március|márc április|ápr május|máj június|jún július|júl augusztus|aug szeptember|szept október|okt november|nov december|dec",
	"ianuarie februarie martie aprilie mai iunie iulie august septembrie octombrie noiembrie decembrie",
	"ιανουαρίου φεβρουαρίου μαρτίου απριλίου μαΐου ιουνίου ιουλίου αυγούστου σεπτεμβρίου οκτωβρίου νοεμβρίου δεκεμβρίου",
}

// months are all names of months in lower case.
var months = func() map[string]monthName {
	names := map[string]monthName{}
	for language, line := range monthTable {
		for i, forms := range strings.Fields(line) {
			for form := range strings.SplitSeq(forms, "|") {
				if _, known := names[form]; !known {
					names[form] = monthName{month: i + 1, english: language == 0}
				}
			}
		}
	}
	return names
}()

// maxMonth is the length of the longest name of a month, in bytes.
var maxMonth = func() int {
	longest := 0
	for name := range months {
		longest = max(longest, len(name)+1) // lower case may be shorter
	}
	return longest
}()

// readMonth reads the name of a month in any of the languages.
func (p *cursor) readMonth() (monthName, bool) {
	if p.i >= len(p.s) {
		return monthName{}, false
	}
	word := scan.Word(p.s, p.i, maxMonth)
	name, ok := months[strings.ToLower(word)]
	if ok {
		p.i += len(word)
	}
	return name, ok
}
