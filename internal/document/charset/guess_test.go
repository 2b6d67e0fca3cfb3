package charset_test

import (
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/coditect/mapreduce/internal/document/charset"
)

// TestGuess writes texts in charsets that do not say which they are.
func TestGuess(t *testing.T) {
	for _, test := range []struct{ charset, text string }{
		{"windows-1252", "Die Lieferung erfolgt bis Ende März. Für Schäden haftet der Käufer nicht. Größere Mengen kosten 20 € extra."},
		{"windows-1252", "CAFÉ DU MONDE\nTotal: 12,50\nMerci à bientôt\n"},
		{"windows-1252", "L'été dernier, les élèves ont présenté un projet très intéressant à la mairie."},
		{"windows-1252", "El niño comió la manzana más rápido que su compañero en la montaña."},
		{"windows-1250", "Zażółć gęślą jaźń. Umowa została zawarta w dniu dzisiejszym pomiędzy stronami, które oświadczają, że mają pełną zdolność."},
		{"windows-1250", "Příliš žluťoučký kůň úpěl ďábelské ódy. Smlouva byla uzavřena dne první března."},
		{"iso-8859-2", "Zażółć gęślą jaźń. Umowa została zawarta w dniu dzisiejszym pomiędzy stronami, które oświadczają."},
		{"windows-1251", "Договор заключён между сторонами в городе Москва. Поставщик обязуется передать товар."},
		{"koi8-r", "Договор заключён между сторонами в городе Москва. Поставщик обязуется передать товар."},
		{"windows-1253", "Η σύμβαση συνάπτεται μεταξύ των μερών στην Αθήνα σήμερα."},
		{"windows-1254", "Sözleşme taraflar arasında İstanbul'da imzalanmıştır. Ücret ödenecektir, güneş doğdu."},
		{"windows-1255", "החוזה נחתם היום בתל אביב בין הצדדים. המחיר הוא אלף שקלים."},
		{"windows-1256", "تم توقيع العقد اليوم في القاهرة بين الطرفين. السعر ألف جنيه."},
		{"windows-874", "สัญญานี้ทำขึ้นในวันนี้ที่กรุงเทพมหานครระหว่างคู่สัญญา"},
		{"shift_jis", "契約は本日、東京において両当事者の間で締結されました。価格は一万円です。"},
		{"euc-jp", "契約は本日、東京において両当事者の間で締結されました。価格は一万円です。"},
		{"gbk", "本合同由双方于今日在北京签订。供应商应当按时交付货物，价格为一万元。"},
		{"big5", "本合約由雙方於今日在臺北簽訂。供應商應當按時交付貨物，價格為一萬元。"},
		{"euc-kr", "본 계약은 오늘 서울에서 양 당사자 간에 체결되었습니다. 가격은 만원입니다."},
	} {
		enc, err := htmlindex.Get(test.charset)
		if err != nil {
			t.Fatal(err)
		}
		data, err := enc.NewEncoder().String(test.text)
		if err != nil {
			t.Fatal(err)
		}
		text, back, name, err := charset.Decode([]byte(data), "")
		if strings.TrimSpace(text) != strings.TrimSpace(test.text) || err != nil {
			t.Errorf("%s: got %q in %s, %v", test.charset, text, name, err)
			continue
		}
		if from, to := back.Source(0, len(text)); from != 0 || to != len(data) {
			t.Errorf("%s: the text maps to [%d, %d) of %d bytes", test.charset, from, to, len(data))
		}
	}
}

// TestNoGuess keeps what is not text, or UTF-8 that is damaged, from being guessed at.
func TestNoGuess(t *testing.T) {
	for name, data := range map[string]string{
		"damaged UTF-8": strings.Repeat("größere Mengen kosten mehr, für Käufer ", 5) + "\xff",
		"too short":     "Gr\xf6\xdfe",
		"bytes":         strings.Repeat("\x00\x01\x80\x90\xff\xfe\x07", 50),
	} {
		if text, _, got, err := charset.Decode([]byte(data), ""); err == nil {
			t.Errorf("%s: got %q in %s", name, text, got)
		}
	}
}

// TestRefusedGuess refuses a text that is not of the charset that it looks like: what is wrong, where, and
// what the user can do.
func TestRefusedGuess(t *testing.T) {
	german := "Die Lieferung erfolgt bis Ende M\xe4rz. F\xfcr Sch\xe4den haftet der K\xe4ufer nicht.\n"
	_, _, _, err := charset.Decode([]byte(strings.Repeat(german, 5)+"\x90"), "")

	const want = "document: refused: not windows-1252: byte 0x90 at offset 370; windows-1252 was only guessed, and --encoding names the charset of plain text"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}

	// Who named a charset need not be told how.
	if _, _, _, err := charset.Decode([]byte(german+"\x90"), "windows-1252"); err == nil || strings.Contains(err.Error(), "--encoding") {
		t.Errorf("of a charset that was named: %v", err)
	}
}
