package wire

import (
	"maps"
	"slices"

	"github.com/coditect/mapreduce/api/mapreduce"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// encodeLocation encodes a location; nil if there is none.
func encodeLocation(l *mapreduce.Location) *pb.Location {
	if l == nil {
		return nil
	}

	return &pb.Location{
		Place:     validText(l.Place),
		Page:      clampInt32(l.Page),
		Sheet:     validText(l.Sheet),
		Cell:      validText(l.Cell),
		Slide:     clampInt32(l.Slide),
		Paragraph: clampInt32(l.Paragraph),
		Part:      validText(l.Part),
		Header:    validText(l.Header),
		Chapter:   validText(l.Chapter),

		Recognised: l.Recognised,
		Boxes: encodeEach(l.Boxes, func(p *pb.Box, b *mapreduce.Box) {
			p.Page, p.Left, p.Top, p.Right, p.Bottom = clampInt32(b.Page), b.Left, b.Top, b.Right, b.Bottom
		}),
	}
}

// decodeLocation decodes a location of a reply.
func decodeLocation(p *pb.Location) *mapreduce.Location {
	if p == nil {
		return nil
	}

	return &mapreduce.Location{
		Place:     p.GetPlace(),
		Page:      int(p.GetPage()),
		Sheet:     p.GetSheet(),
		Cell:      p.GetCell(),
		Slide:     int(p.GetSlide()),
		Paragraph: int(p.GetParagraph()),
		Part:      p.GetPart(),
		Header:    p.GetHeader(),
		Chapter:   p.GetChapter(),

		Recognised: p.GetRecognised(),
		Boxes: convertEach(p.GetBoxes(), func(b *pb.Box) mapreduce.Box {
			return mapreduce.Box{Page: int(b.GetPage()), Left: b.GetLeft(), Top: b.GetTop(), Right: b.GetRight(), Bottom: b.GetBottom()}
		}),
	}
}

// encodeLocations encodes where citations are, by their ids.
func encodeLocations(of map[string]*mapreduce.Location) []*pb.CitedLocation {
	var all []*pb.CitedLocation
	for _, id := range slices.Sorted(maps.Keys(of)) {
		all = append(all, &pb.CitedLocation{CitationId: []byte(id), Location: encodeLocation(of[id])})
	}
	return all
}

// decodeLocations decodes where citations are; nil if no place is known.
func decodeLocations(all []*pb.CitedLocation) map[string]*mapreduce.Location {
	if len(all) == 0 {
		return nil
	}
	of := make(map[string]*mapreduce.Location, len(all))
	for _, c := range all {
		of[string(c.GetCitationId())] = decodeLocation(c.GetLocation())
	}
	return of
}
