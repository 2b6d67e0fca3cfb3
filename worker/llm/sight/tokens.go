package sight

import "math"

// What stands around a picture in a prompt, in tokens: a model of Claude's counts three or four, and
// some 40 of one that it shrinks.
const around = 48

// patchesOf returns how many squares of some pixels cover a picture.
func patchesOf(width, height, side int) int64 {
	return int64((width+side-1)/side) * int64((height+side-1)/side)
}

// upTo returns whether a model sees a picture as it is that has so many patches at most.
func upTo(side int, most int64) func(int, int) bool {
	return func(width, height int) bool { return patchesOf(width, height, side) <= most }
}

// shortUpTo returns the same of one that shrinks pictures by their shorter side.
func shortUpTo(most int) func(int, int) bool {
	return func(width, height int) bool { return min(width, height) <= most }
}

// anySize is of a model that cuts tiles of any size.
func anySize(int, int) bool { return true }

// openaiPatch is the side of a patch of OpenAI's, in pixels.
const openaiPatch = 32

// Claude's: a token is a square of 28 pixels, up to 1,568 for models of the standard tier; what was
// published before is a token for 750 pixels.
const (
	claudePatch = 28
	claudeSees  = 1568
)

func claudeTokens(width, height int) int64 {
	return max(patchesOf(width, height, claudePatch), (int64(width)*int64(height)+749)/750) + around
}

// patched returns OpenAI's rule of newer models: squares of 32 pixels, so many at most, each counted
// as so many tokens. A picture that has more squares is shrunk until it has no more than that.
func patched(times float64, most int64) func(int, int) int64 {
	return func(width, height int) int64 {
		return int64(math.Ceil(float64(min(patchesOf(width, height, openaiPatch), most))*times)) + around
	}
}

// tiled returns OpenAI's rule of older models: a picture is shrunk into a square of 2,048 pixels, then
// until its shorter side has 768, and counts by its tiles of 512.
func tiled(base, tile int64) func(int, int) int64 {
	return func(width, height int) int64 {
		w, h := float64(width), float64(height)
		if scale := 2048 / math.Max(w, h); scale < 1 {
			w, h = w*scale, h*scale
		}
		if scale := 768 / math.Min(w, h); scale < 1 {
			w, h = w*scale, h*scale
		}
		return base + tile*int64(math.Ceil(w/512))*int64(math.Ceil(h/512)) + around
	}
}

// gemini3 is the most that a model of Gemini 3 or later counts for a picture that says nothing of its
// resolution.
const gemini3 = 1120

func whole(tokens int64) func(int, int) int64 {
	return func(int, int) int64 { return tokens + around }
}

// geminiTiles is Google's rule of older models: 258 tokens of a picture of up to 384 pixels, else of
// each tile, whose side is two thirds of the shorter side, within 256 and 768 pixels.
func geminiTiles(width, height int) int64 {
	const tokens = 258
	if max(width, height) <= 384 {
		return tokens + around
	}
	side := min(max(min(width, height)*2/3, 256), 768)
	return tokens*patchesOf(width, height, side) + around
}

// unknown is for models of which no rule is known: squares of 14 pixels, joined in fours by most, are
// the finest that open models have; those that cut tiles count at most 6,500.
func unknown(width, height int) int64 {
	return max(patchesOf(width, height, 16), 6500) + around
}

// dearestRule returns the rule that counts the most of some.
func dearestRule(all ...func(int, int) int64) func(int, int) int64 {
	return func(width, height int) (most int64) {
		for _, count := range all {
			most = max(most, count(width, height))
		}
		return most
	}
}
