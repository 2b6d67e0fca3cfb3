package model

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/coditect/mapreduce/api/pipeline"
	"github.com/coditect/mapreduce/api/protocol"
	"github.com/coditect/mapreduce/worker/agent"
)

// Stages are the stages of a pipeline by the kinds of their units.
type Stages struct {
	Mapping *pipeline.Stage // of map units
	group   *pipeline.Stage // of reduces
	Direct  *pipeline.Stage // of the direct unit; nil if there is none
}

// stagesOf returns the stages of a pipeline, or an error if it has none for map units
// or reduces.
func stagesOf(p *pipeline.Pipeline) (Stages, error) {
	var s Stages
	for _, stage := range p.Stages {
		switch stage.Each {
		case pipeline.EachDocument, pipeline.EachChunk:
			s.Mapping = stage
		case pipeline.EachGroup:
			s.group = stage
		case pipeline.EachAll:
			s.Direct = stage
		}
	}

	if s.Mapping == nil || s.group == nil {
		return s, fmt.Errorf("the pipeline %s needs a stage with each: document or chunk, and one with each: group", p.Name)
	}
	return s, nil
}

// findStages finds the stages of the program: the one whose units it runs, or, in a job
// without stages, those of all its units.
func (p *Program) findStages() (err error) {
	if p.stage == nil {
		if p.Stages, err = stagesOf(p.Pipeline); err != nil {
			return err
		}
		return p.Pipeline.CheckExamples(p.Schema)
	}

	one := p.Pipeline.Stage(p.stage.Name)
	if one == nil {
		return fmt.Errorf("the pipeline %s has no stage %q", p.Pipeline.Name, p.stage.Name)
	}
	p.Stages = Stages{one, one, one}
	return nil
}

// stageExamples shows the examples of the program's stage, or if it has none, those of
// another stage that finds the same in documents.
func (p *Program) stageExamples(show func(*pipeline.Stage) (string, error)) (string, error) {
	for _, s := range append([]*pipeline.Stage{p.Mapping}, p.Pipeline.Stages.OfDocuments()...) {
		if len(s.Examples) > 0 && bytes.Equal(s.Output.Schema, p.Mapping.Output.Schema) {
			return show(s)
		}
	}
	return "", nil
}

// fixedOf returns the instructions that all units of a stage share: the texts of the
// pipeline followed by then, or otherwise if the stage has no texts.
func (p *Program) fixedOf(s *pipeline.Stage, vars map[string]string, then, otherwise string) (string, error) {
	if s.Agent == nil {
		return otherwise, nil
	}
	fixed, err := p.Pipeline.Texts(vars).Fixed(s.Name)
	return fixed + then, err
}

// OwnPrompt returns the pipeline's texts about the unit's documents. In a stage with
// several agents, it returns those of the unit's agent.
func (s *Session) OwnPrompt(stage *pipeline.Stage, docs []pipeline.Document) (string, error) {
	if stage.Each == pipeline.EachAgent {
		text, err := s.Pipeline.Texts(s.Task.Spec.Vars).OfAgent(stage.Name, ItemOf(s.Task.Item)[0].Metadata["agent"])
		if err != nil {
			return "", agent.Permanent(err)
		}
		return text, nil
	}

	text, err := s.Pipeline.Texts(s.Task.Spec.Vars).Own(stage.Name, docs)
	if err != nil {
		return "", agent.Permanent(err) // another attempt has the same document
	}
	return text, nil
}

// ItemOf is what templates may say of the element that the unit works on: of an
// object its fields, of anything else its id, which is the element itself.
func ItemOf(item []byte) []pipeline.Document {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(item))
	d.UseNumber()

	if d.Decode(&fields) != nil {
		return []pipeline.Document{{ID: plainText(item)}}
	}

	doc := pipeline.Document{Metadata: make(map[string]string, len(fields))}
	for key, v := range fields {
		raw, err := json.Marshal(v)
		if err == nil { // it came as JSON
			doc.Metadata[key] = plainText(raw)
		}
	}

	doc.ID = doc.Metadata["id"]
	return []pipeline.Document{doc}
}

// plainText is a text without the marks of JSON, and any other value as JSON.
func plainText(raw []byte) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}

// DocumentOf is what templates may say of the unit's document.
func DocumentOf(t *protocol.Text) []pipeline.Document {
	return []pipeline.Document{{ID: string(t.Document), Metadata: t.Metadata}}
}
