package pipeline

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/coditect/mapreduce/api/errs"
	"github.com/coditect/mapreduce/api/pipeline/internal/filetree"
)

// reserved are the names of the pipelines that come with the program, now or later.
var reserved = []string{"extract", "synthesize", "compare", "research"}

//go:embed presets/*.yaml
var presets embed.FS

// A PresetInfo is a pipeline that comes with the program.
type PresetInfo struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Presets returns the pipelines that come with the program, by name.
func Presets() []PresetInfo {
	var all []PresetInfo
	for _, name := range presetNames() {
		all = append(all, PresetInfo{name, parsed()[name].Description})
	}
	return all
}

// Preset returns the pipeline of a name that comes with the program. It is shared, and
// must not be changed.
func Preset(name string) (*Pipeline, error) {
	if p := parsed()[name]; p != nil {
		return p, nil
	}
	return nil, errs.Field("pipeline", "no pipeline that comes with the program is called %.80q; there is %s", name, filetree.ListNames(presetNames()))
}

// PresetFile returns the file of a pipeline that comes with the program, as its
// authors wrote it.
func PresetFile(name string) ([]byte, error) {
	if _, err := Preset(name); err != nil {
		return nil, err
	}
	return presets.ReadFile(presetPath(name))
}

func presetNames() []string { return slices.Sorted(maps.Keys(parsed())) }

func presetPath(name string) string { return "presets/" + name + ".yaml" }

// parsed holds the presets by name. They are parts of the program, and its tests read
// them: a fault in one is a bug.
var parsed = sync.OnceValue(func() map[string]*Pipeline {
	files, err := presets.ReadDir("presets")
	if err != nil {
		panic(fmt.Sprintf("pipeline: the program holds no presets: %v", err))
	}
	all := make(map[string]*Pipeline, len(files))
	for _, f := range files {
		name := strings.TrimSuffix(f.Name(), path.Ext(f.Name()))
		data, err := presets.ReadFile(presetPath(name))
		if err != nil {
			panic(fmt.Sprintf("pipeline: %v", err))
		}
		p, err := parseFile(f.Name(), data)
		if err != nil || p.Name != name {
			panic(fmt.Sprintf("pipeline: preset %s: %v", name, err))
		}
		all[name] = p
	}
	return all
})
