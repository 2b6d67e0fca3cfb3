package wire

import (
	"github.com/coditect/mapreduce/api/mapreduce"
	"github.com/coditect/mapreduce/api/protocol"
	pb "github.com/coditect/mapreduce/proto/coditect/mapreduce/v1"
)

// EncodeToWorker encodes a message to a worker. The result shares m's bytes.
func EncodeToWorker(m *protocol.ToWorker) *pb.WorkResponse {
	return &pb.WorkResponse{
		Welcome:     encodeWelcome(m.Welcome),
		Jobs:        encodeEach(m.Jobs, encodeJobInfo),
		Assignments: encodeEach(m.Assignments, encodeAssignment),
		Verdicts:    encodeEach(m.Verdicts, encodeVerdict),
		Reserved:    encodeEach(m.Reserved, encodeReserved),
		Cancel:      encodeEach(m.Cancel, fillHeld),
		Goodbye:     m.Goodbye,
		Forget:      convertEach(m.Forget, func(id mapreduce.JobID) string { return string(id) }),
		Limits:      encodeEach(m.Limits, encodeLimitShare),
		Manners:     encodeEach(m.Manners, encodeManners),
	}
}

// DecodeToWorker decodes a message to a worker. The result shares p's bytes. A
// kind or a verdict that is newer than the worker becomes the unknown one.
func DecodeToWorker(p *pb.WorkResponse) (*protocol.ToWorker, error) {
	d := new(decoder)
	m := &protocol.ToWorker{
		Welcome:     decodeOptional(d, "welcome", p.GetWelcome(), decodeWelcome),
		Jobs:        decodeList(d, "jobs", p.GetJobs(), decodeJobInfo),
		Assignments: decodeList(d, "assignments", p.GetAssignments(), decodeAssignment),
		Verdicts:    decodeList(d, "verdicts", p.GetVerdicts(), decodeVerdict),
		Reserved:    decodeList(d, "reserved", p.GetReserved(), decodeReserved),
		Cancel:      decodeList(d, "cancel", p.GetCancel(), decodeHeld),
		Goodbye:     p.GetGoodbye(),
		Forget:      decodeList(d, "forget", p.GetForget(), func(d *decoder, id string) mapreduce.JobID { return mapreduce.JobID(d.decodeName("id", id, MaxNames)) }),
		Limits:      decodeList(d, "limits", p.GetLimits(), decodeLimitShare),
		Manners:     decodeList(d, "manners", p.GetManners(), decodeManners),
	}

	if d.err != nil {
		return nil, d.err
	}
	return m, nil
}

func encodeWelcome(w *protocol.Welcome) *pb.Welcome {
	if w == nil {
		return nil
	}
	return &pb.Welcome{
		NodeId:            string(w.Node),
		Epoch:             w.Epoch,
		HeartbeatInterval: encodeDuration(w.Heartbeat),
		Drop:              encodeEach(w.Drop, fillHeld),
		Silence:           encodeDuration(w.Silence),
	}
}

func decodeWelcome(d *decoder, p *pb.Welcome) protocol.Welcome {
	return protocol.Welcome{
		Node:      mapreduce.NodeID(d.decodeName("node_id", p.GetNodeId(), MaxNames)),
		Epoch:     d.decodeCount64("epoch", p.GetEpoch()),
		Heartbeat: d.decodeDuration("heartbeat_interval", p.GetHeartbeatInterval()),
		Drop:      decodeList(d, "drop", p.GetDrop(), decodeHeld),
		Silence:   d.decodeDuration("silence", p.GetSilence()),
	}
}

func encodeJobInfo(p *pb.JobInfo, j *protocol.JobInfo) {
	p.JobId, p.Stage, p.Spec = string(j.Job), validText(j.Stage), EncodeSpec(&j.Spec)
}

func decodeJobInfo(d *decoder, p *pb.JobInfo) protocol.JobInfo {
	return protocol.JobInfo{
		Job:   d.jobID("job_id", p.GetJobId()),
		Stage: d.decodeName("stage", p.GetStage(), MaxNames),
		Spec:  decodePart(d, "spec", p.GetSpec(), decodeSpec),
	}
}

func encodeAssignment(p *pb.Assignment, a *protocol.Assignment) {
	p.JobId, p.UnitId, p.Attempt = string(a.Job), string(a.Unit), clampInt32(a.Attempt)
	p.Kind, p.Level, p.Index = pb.UnitKind(a.Kind), clampInt32(a.Level), a.Index
	p.Timeout = encodeDuration(a.Timeout)
	p.ReservedTokens = a.Reserved
	p.Journal, p.JournalEntries = a.Journal, int64(a.JournalEntries)
	p.EvidenceItems = int64(a.EvidenceItems)
	p.Alone, p.Last, p.Tier, p.RealTimeTier = a.Alone, a.Last, validText(a.Tier), validText(a.RealTime)

	p.Text = encodeText(a.Text)
	p.Inputs = encodeEach(a.Inputs, encodeInput)
	p.Stage, p.Depth, p.Item = validText(a.Stage), clampInt32(a.Depth), encodeJSON(a.Item)

	if w := a.WakeCall; w != nil {
		p.WakeCall = &pb.WakeCall{Handle: validText(w.Handle), Answer: w.Answer}
	}

	p.Blobs = encodeEach(a.Blobs, fillBlob)
	p.TraceParent = validText(a.TraceParent)
}

// decodeAssignment also refuses a core that is not in the content of the text,
// wherever that is, since cutting it out would panic.
func decodeAssignment(d *decoder, p *pb.Assignment) protocol.Assignment {
	a := protocol.Assignment{
		Job:      d.jobID("job_id", p.GetJobId()),
		Unit:     d.unitID("unit_id", p.GetUnitId()),
		Attempt:  d.decodeCount("attempt", p.GetAttempt()),
		Kind:     knownOrZero(p.GetKind(), lastUnitKind),
		Level:    int(p.GetLevel()),
		Index:    d.decodeCount64("index", p.GetIndex()),
		Timeout:  d.decodeDuration("timeout", p.GetTimeout()),
		Reserved: d.decodeCount64("reserved_tokens", p.GetReservedTokens()),
		Alone:    p.GetAlone(),
		Last:     p.GetLast(),
		Tier:     d.decodeName("tier", p.GetTier(), MaxNames),
		RealTime: d.decodeName("real_time_tier", p.GetRealTimeTier(), MaxNames),
		Journal:  p.GetJournal(),
		Text:     decodeOptional(d, "text", p.GetText(), decodeText),
		Inputs:   decodeList(d, "inputs", p.GetInputs(), decodeInput),
		Stage:    d.decodeName("stage", p.GetStage(), MaxNames),
		Depth:    d.decodeCount("depth", p.GetDepth()),
		Item:     decodeJSON(p.GetItem()),
		WakeCall: decodeOptional(d, "wake_call", p.GetWakeCall(), decodeWakeCall),
		Blobs:    decodeList(d, "blobs", p.GetBlobs(), decodeBlob),

		TraceParent: d.decodeName("trace_parent", p.GetTraceParent(), MaxNames),

		JournalEntries: int(d.decodeCount64("journal_entries", p.GetJournalEntries())),
		EvidenceItems:  int(d.decodeCount64("evidence_items", p.GetEvidenceItems())),
	}

	if a.Text == nil {
		return a
	}

	// Content that is not in the message is announced as a blob.
	content := int64(len(a.Text.Content))
	for _, b := range a.Blobs {
		if b.Kind == protocol.BlobText {
			content = b.End - b.Start
		}
	}

	if a.Text.CoreStart > a.Text.CoreEnd || int64(a.Text.CoreEnd) > content {
		d.refuseField("text.core_end", "the core [%d, %d) is not within the %d bytes of content", a.Text.CoreStart, a.Text.CoreEnd, content)
	}
	return a
}

func decodeWakeCall(d *decoder, p *pb.WakeCall) protocol.WakeCall {
	return protocol.WakeCall{Handle: d.decodeID("handle", p.GetHandle(), mapreduce.MaxHandle), Answer: p.GetAnswer()}
}

func encodeText(t *protocol.Text) *pb.Text {
	if t == nil {
		return nil
	}

	return &pb.Text{
		DocumentId: string(t.Document),
		Sha256:     t.SHA256,
		MediaType:  validText(t.MediaType),
		Metadata:   textMap(t.Metadata),
		Content:    t.Content,
		CoreStart:  clampInt32(t.CoreStart),
		CoreEnd:    clampInt32(t.CoreEnd),
		ByteOffset: t.ByteOffset,
		CharOffset: t.CharOffset,
		ChunkIndex: clampInt32(t.ChunkIndex),
		ChunkCount: clampInt32(t.Chunks),

		DocumentBytes: t.Length,
		Shown:         encodeShown(t.Shown),
	}
}

func encodeShown(s *protocol.ShownPages) *pb.ShownPages {
	if s == nil {
		return nil
	}
	return &pb.ShownPages{Sha256: s.SHA256, SizeBytes: s.Length, Pages: convertEach(s.Pages, clampInt32)}
}

func decodeShown(d *decoder, p *pb.ShownPages) protocol.ShownPages {
	s := protocol.ShownPages{SHA256: d.decodeHash("sha256", p.GetSha256()), Length: d.decodeCount64("size_bytes", p.GetSizeBytes())}
	if n := len(p.GetPages()); n > protocol.MaxShownPages {
		d.refuseField("pages", "has %d pages; at most %d are shown", n, protocol.MaxShownPages)
		return s
	}
	s.Pages = convertEach(p.GetPages(), func(n int32) int { return d.decodeCount("pages", n) })
	return s
}

func decodeText(d *decoder, p *pb.Text) protocol.Text {
	return protocol.Text{
		Document:   d.documentID("document_id", p.GetDocumentId()),
		SHA256:     p.GetSha256(),
		MediaType:  p.GetMediaType(),
		Metadata:   p.GetMetadata(),
		Content:    p.GetContent(),
		CoreStart:  d.decodeCount("core_start", p.GetCoreStart()),
		CoreEnd:    d.decodeCount("core_end", p.GetCoreEnd()),
		ByteOffset: d.decodeCount64("byte_offset", p.GetByteOffset()),
		CharOffset: d.decodeCount64("char_offset", p.GetCharOffset()),
		ChunkIndex: d.decodeCount("chunk_index", p.GetChunkIndex()),
		Chunks:     d.decodeCount("chunk_count", p.GetChunkCount()),
		Length:     d.decodeCount64("document_bytes", p.GetDocumentBytes()),
		Shown:      decodeOptional(d, "shown", p.GetShown(), decodeShown),
	}
}

func encodeInput(p *pb.Input, i *protocol.Input) {
	p.UnitId = string(i.Unit)
	p.FirstUnit, p.EndUnit = i.First, i.End
	p.Failed, p.Referred = i.Failed, i.Referred
	p.Data = i.Data
}

func decodeInput(d *decoder, p *pb.Input) protocol.Input {
	return protocol.Input{
		Unit:     d.unitID("unit_id", p.GetUnitId()),
		First:    d.decodeCount64("first_unit", p.GetFirstUnit()),
		End:      d.decodeCount64("end_unit", p.GetEndUnit()),
		Failed:   p.GetFailed(),
		Data:     p.GetData(),
		Referred: p.GetReferred(),
	}
}

func encodeVerdict(p *pb.ReportVerdict, v *protocol.VerdictOn) {
	p.Held, p.Verdict = encodeHeld(v.Held), pb.Verdict(v.Verdict)
}

func decodeVerdict(d *decoder, p *pb.ReportVerdict) protocol.VerdictOn {
	return protocol.VerdictOn{
		Held:    decodePart(d, "held", p.GetHeld(), decodeHeld),
		Verdict: knownOrZero(p.GetVerdict(), lastVerdict),
	}
}

func encodeReserved(p *pb.ReserveReply, r *protocol.ReserveReply) {
	p.Held, p.Granted = encodeHeld(r.Held), r.Granted
}

func decodeReserved(d *decoder, p *pb.ReserveReply) protocol.ReserveReply {
	return protocol.ReserveReply{
		Held:    decodePart(d, "held", p.GetHeld(), decodeHeld),
		Granted: p.GetGranted(),
	}
}
