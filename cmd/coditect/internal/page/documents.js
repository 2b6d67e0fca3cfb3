	// ---- documents: all values of one at once, each where it stands in the text

	// A mark is a quote of a document for a field, with the values that it supports. In the
	// page of a report the fields are its sections, and the values are the sentences that
	// refer to the quote.
	const marks = new Map(); // by the position of the document, in the order of their places
	const marked = []; // positions of the documents that have marks
	const fieldNumbers = new Map(); // of the fields that have marks, from 1
	const marksShown = 2000; // of a document at once
	const valuesShown = 20; // of a mark
	const documentsListed = 200;
	const noun = data.report ? "passage" : "value";
	const notVerified = new Map(); // how many values of the records of a document, by its position

	function collectMarks() {
		const known = new Map();
		function add(field, at, value) {
			const c = data.citations[at];
			if (!c || !c.q) return; // the page has no room for it
			const key = at + " " + field;
			let mark = known.get(key);
			if (!mark) {
				if (!fieldNumbers.has(field)) fieldNumbers.set(field, fieldNumbers.size + 1);
				mark = { field, number: fieldNumbers.get(field), citation: c, at, start: c.s, end: c.e, values: [], shown: [] };
				known.set(key, mark);
				if (!marks.has(c.d)) marks.set(c.d, []);
				marks.get(c.d).push(mark);
			}
			mark.values.push(value);
		}
		if (data.report) addReferences(add);
		else addValues(add);
		marked.push(...[...marks.keys()].sort((a, b) => a - b));
		for (const list of marks.values()) list.sort((a, b) => a.start - b.start || b.end - a.end || a.number - b.number);
	}

	function addValues(add) {
		for (const record of records) {
			for (const d of record.u ? record.s || [] : []) notVerified.set(d, (notVerified.get(d) || 0) + Object.keys(record.u).length);
		}
		for (const field of data.fields) {
			for (const record of records) {
				const text = entry(record.v, field);
				if (text === undefined) continue;
				for (const at of entry(record.c, field) || []) add(field, at, { text, record });
			}
		}
		for (const conflict of data.conflicts) {
			const field = data.fields.find((f) => conflict.field === f || conflict.field.startsWith(f + ".")) || conflict.field;
			for (const candidate of conflict.candidates) {
				if (candidate.v === conflict.chosen) continue;
				for (const at of candidate.c || []) add(field, at, { text: candidate.v, note: "not chosen; the record has " + conflict.chosen });
			}
		}
	}

	function addReferences(add) {
		const references = data.report.references;
		const used = new Set();
		function addNumbers(section, text, value) {
			for (const part of text.split(referenceParts)) {
				for (const n of referenceNumbers(part)) {
					used.add(n);
					add(section.title, references[n - 1].citation, { ...value, reference: n });
				}
			}
		}
		for (const section of data.report.sections) {
			for (const claim of data.report.claims.filter((c) => c.section === section.name)) addNumbers(section, claim.text, { text: claim.text, note: claim.grade });
			for (const row of section.rows || []) for (const cell of row) addNumbers(section, cell, { text: row[0] });
		}
		references.forEach((r, i) => {
			if (!used.has(i + 1)) add("References", r.citation, { text: r.source, reference: i + 1 });
		});
	}

	// ---- the text of a document with its marks

	function lengthOf(text) { // in code points
		let n = 0;
		for (const _ of text) n++;
		return n;
	}

	// pieces returns what the page has of a document, each with its place: all of the text, or
	// what stands around its quotes, joined where it meets.
	function pieces(d) {
		const whole = (data.texts || {})[d];
		if (whole !== undefined) return [{ start: 0, end: lengthOf(whole), text: whole }];
		const around = marks.get(d).slice(0, marksShown).map(({ citation: c }) => {
			const start = c.s - lengthOf(c.b || ""), text = (c.b || "") + c.q + (c.a || "");
			return { start, end: start + lengthOf(text), text };
		}).sort((a, b) => a.start - b.start);
		const joined = [];
		for (const piece of around) {
			const last = joined[joined.length - 1];
			if (!last || piece.start > last.end) {
				joined.push(piece);
			} else if (piece.end > last.end) {
				last.text += piece.text.slice(position(piece.text, last.end - piece.start));
				last.end = piece.end;
			}
		}
		return joined;
	}

	// markedText returns a piece of a text as texts and marks. Where marks overlap, each part
	// that the same marks cover is an element of its own.
	function markedText(piece, list) {
		const inside = list.filter((mark) => mark.start < piece.end && mark.end > piece.start);
		const cuts = new Set([piece.start, piece.end]);
		for (const mark of inside) cuts.add(Math.max(mark.start, piece.start)).add(Math.min(mark.end, piece.end));
		const places = [...cuts].sort((a, b) => a - b);
		const shown = [];
		let from = 0, next = 0, open = [], cutsLineEnd = false;
		for (let i = 0; i + 1 < places.length; i++) {
			const before = next;
			while (next < inside.length && inside[next].start <= places[i]) next++;
			open = [...open, ...inside.slice(before, next)].filter((mark) => mark.end > places[i]);
			const to = from + position(piece.text.slice(from), places[i + 1] - places[i]);
			const text = piece.text.slice(from, to);
			from = to;
			const seen = visible(cutsLineEnd && text.startsWith("\n") ? text.slice(1) : text); // a line end is two characters in some texts
			cutsLineEnd = text.endsWith("\r");
			shown.push(open.length ? markElement(seen, open, places[i]) : seen);
		}
		return shown;
	}

	const colourOf = (mark) => "field" + (mark.number - 1) % 8;

	// markElement shows a text that some marks cover, those that begin before others first.
	// It has the numbers of the fields whose marks begin here: no one has to tell colours.
	function markElement(text, open, at) {
		const numbers = [...new Set(open.filter((mark) => mark.start === at).map((mark) => mark.number))];
		const colours = [...new Set(open.map(colourOf))];
		const shown = element("mark", {
			class: colours[0], title: visible(open.slice(0, 4).map((mark) => mark.number + " " + inWords(mark)).join("\n")), "data-numbers": numbers.length ? numbers.join() : undefined,
			click: () => { // the innermost; once more, the one around it
				const at = open.indexOf(reader.current);
				selectMark(open[(Math.max(at, 0) + open.length - 1) % open.length]);
			},
		}, text);
		if (colours.length > 1) { // a band for each; the policy allows no style attributes
			const bands = colours.map((c, i) => "var(--" + c + ") " + 100 * i / colours.length + "% " + 100 * (i + 1) / colours.length + "%");
			shown.style.backgroundImage = "linear-gradient(" + bands.join() + ")";
		}
		for (const mark of open) mark.shown.push(shown);
		return shown;
	}

	const clip = (text, n) => text.length > 2 * n ? text.slice(0, position(text, n)) + "…" : text;

	const valueNotes = (field, value) => [value.record ? confidenceText(value.record, field) : null, value.note].filter(Boolean).join(", ");

	const origin = (value) => value.record ? "record " + value.record.n : value.reference ? "reference " + value.reference : "";

	// inWords tells what a mark is, on one line.
	function inWords(mark) {
		const [value] = mark.values, more = mark.values.length - 1;
		const notes = [gradeText(mark.citation), valueNotes(mark.field, value), mark.citation.p, origin(value), more ? plural(more, "more value", "more values") : ""];
		return clip(mark.field, 60) + ": " + clip(value.text, 120) + " (" + notes.filter(Boolean).join(", ") + ")";
	}

	// ---- the reader: which document is shown, which fields, and the value of the moment

	const reader = { document: -1, list: [], current: null, hidden: new Set(), listed: [] };

	// visibleMarks returns the marks of a document that are shown.
	const visibleMarks = (d) => marks.get(d).slice(0, marksShown).filter((mark) => !reader.hidden.has(mark.field));

	function showText() {
		const d = reader.document;
		for (const mark of marks.get(d)) mark.shown = [];
		reader.list = visibleMarks(d);
		const whole = (data.texts || {})[d] !== undefined;
		const shown = pieces(d).flatMap((piece, i) => [i || piece.start > 0 ? "…" + (i ? "\n" : "") : "", ...markedText(piece, reader.list)]);
		const box = byId("document-text");
		box.setAttribute("aria-label", "Text of " + visible(documentName(d)));
		box.replaceChildren(element("bdi", {}, shown, whole ? null : "…"));
		box.classList.toggle("aligned", isAligned(box.textContent.slice(0, 20000)));
		const more = marks.get(d).length - marksShown;
		byId("document-limits").textContent = [
			whole ? "" : "This page shows only the text around the quotes, as its size is limited. ",
			more > 0 ? plural(more, "more " + noun + " of this document is", "more " + noun + "s of this document are") + " not marked, as the size of this page is limited." : "",
		].join("");
		const lost = notVerified.get(d) || 0;
		byId("document-unverified").replaceChildren(...(lost ? [
			plural(lost, "value of its records is", "values of its records are") + " not in the text, or break the schema: ", element("a", { href: "#unverified" }, "values that are not verified"), ".",
		] : []));
	}

	function showLegend() {
		const counts = new Map();
		for (const mark of marks.get(reader.document)) counts.set(mark.field, (counts.get(mark.field) || 0) + 1);
		const boxes = [...fieldNumbers].filter(([field]) => counts.has(field)).map(([field, number]) =>
			element("label", {},
				element("input", {
					type: "checkbox", checked: !reader.hidden.has(field),
					input: (event) => {
						if (event.target.checked) reader.hidden.delete(field);
						else reader.hidden.add(field);
						showMarks();
					},
				}),
				element("span", { class: "swatch " + colourOf({ number }), "aria-hidden": "true" }, String(number)),
				element("span", {}, quoted(field), " (" + counts.get(field).toLocaleString("en") + ")")));
		const setAll = (hide) => () => {
			for (const field of counts.keys()) {
				if (hide) reader.hidden.add(field);
				else reader.hidden.delete(field);
			}
			showLegend();
			showMarks();
			byId("document-legend").querySelectorAll("button")[hide ? 1 : 0].focus();
		};
		byId("document-legend").replaceChildren(element("legend", {}, data.report ? "Sections that refer to it" : "Fields"), ...boxes,
			...(boxes.length > 2 ? [["All", false], ["None", true]].map(([label, hide]) =>
				element("button", { type: "button", "aria-label": label + " of the fields", click: setAll(hide) }, label)) : []));
	}

	// showMarks shows the text again, with the value of the moment, or the next one that can
	// be seen.
	function showMarks() {
		const before = reader.current;
		showText();
		const kept = reader.list.includes(before) ? before : reader.list.find((mark) => before && mark.start >= before.start);
		selectMark(kept || reader.list[0] || null);
	}

	function selectMark(mark) {
		for (const shown of reader.current ? reader.current.shown : []) shown.removeAttribute("aria-current");
		reader.current = mark;
		for (const shown of mark ? mark.shown : []) shown.setAttribute("aria-current", "true");
		if (mark && mark.shown.length) {
			const box = byId("document-text");
			box.scrollTop = mark.shown[0].offsetTop - box.offsetTop - box.clientHeight / 3;
		}
		const at = reader.list.indexOf(mark), place = marked.indexOf(reader.document);
		byId("document-status").replaceChildren(...(mark
			? [noun[0].toUpperCase() + noun.slice(1) + " " + (at + 1).toLocaleString("en") + " of " + reader.list.length.toLocaleString("en") + ": ", quoted(inWords(mark))]
			: ["No field of this document is shown."]));
		byId("document-value").replaceChildren(...(mark ? valuePanel(mark) : []));
		const slider = byId("document-slider");
		slider.max = Math.max(1, reader.list.length);
		slider.value = at + 1;
		slider.disabled = reader.list.length < 2;
		slider.setAttribute("aria-valuetext", at + 1 + " of " + reader.list.length);
		byId("value-before").disabled = !neighbour(-1);
		byId("value-after").disabled = !neighbour(1);
		byId("document-before").disabled = place === 0;
		byId("document-after").disabled = place === marked.length - 1;
	}

	function valuePanel(mark) {
		const c = mark.citation;
		const row = (name, ...content) => element("div", {}, element("dt", {}, name), element("dd", {}, content));
		const leadsTo = (value) => {
			if (!origin(value)) return null;
			const lead = () => { value.record ? openRecord(value.record) : openReference(value.reference); };
			return element("button", { type: "button", class: "link", click: lead }, origin(value));
		};
		const values = mark.values.slice(0, valuesShown).map((value) => element("li", {},
			element("strong", {}, quoted(clip(value.text, 500))), " ", element("span", { class: "dim" }, quoted(valueNotes(mark.field, value))), " ", leadsTo(value)));
		const more = mark.values.length - values.length;
		const notes = [c.x ? "not in the chunk that was read" : null, c.o ? "or at one of " + c.o + " other places" : null].filter(Boolean);
		return [
			element("h3", {}, element("span", { class: "swatch " + colourOf(mark), "aria-hidden": "true" }, String(mark.number)), " ", quoted(mark.field)),
			element("ul", {}, values, more > 0 ? element("li", { class: "note" }, plural(more, "more value rests", "more values rest") + " on this quote.") : null),
			element("dl", {},
				row("Quote", element("button", {
					type: "button", class: "link", "aria-label": "Open the quote " + visible(clip(c.q, 150)), click: () => open([quoted(mark.field)], citation(mark.at)),
				}, quoted(clip(c.q, 150)))),
				row("Grade", quoted(gradeText(c))),
				row("Place", quoted([c.p, "characters " + c.s + "–" + c.e].filter(Boolean).join(", "))),
				notes.length ? row("Note", notes.join(", ")) : null,
				row("Reference", quoted(c.r))),
		];
	}

	// neighbour returns the mark before the current one, or after it, in this document or in
	// the next one that has any.
	function neighbour(step) {
		const beside = reader.list[reader.list.indexOf(reader.current) + step];
		if (reader.current && beside) return { document: reader.document, mark: beside };
		for (let place = marked.indexOf(reader.document) + step; place >= 0 && place < marked.length; place += step) {
			const list = visibleMarks(marked[place]);
			if (list.length) return { document: marked[place], mark: step > 0 ? list[0] : list[list.length - 1] };
		}
		return null;
	}

	function stepTo(step) {
		const next = neighbour(step);
		if (!next) return;
		if (next.document !== reader.document) showDocument(next.document);
		selectMark(next.mark);
	}

	function showDocument(d) {
		reader.document = d;
		reader.current = null;
		showLegend();
		showMarks();
		listDocuments();
	}

	// foundDocuments returns the documents whose names have what the reader looks for.
	function foundDocuments() {
		const query = byId("document-query").value.trim().toLowerCase();
		return marked.filter((d) => !query || documentName(d).toLowerCase().includes(query));
	}

	// listDocuments fills the list to choose from: as many as it may have of those that were
	// found, around the one that is shown.
	function listDocuments() {
		const found = foundDocuments(), at = found.indexOf(reader.document);
		const first = Math.max(0, Math.min(at - documentsListed / 2, found.length - documentsListed));
		const listed = found.slice(first, first + documentsListed);
		if (at < 0) listed.unshift(reader.document);
		byId("document-name").replaceChildren(...listed.map((d) => element("option", { value: d }, visible(documentName(d)) || "–")));
		byId("document-name").value = reader.document;
		byId("document-count").textContent = (found.length < marked.length ? found.length.toLocaleString("en") + " of " : "")
			+ plural(marked.length, "document.", "documents.") + (found.length > documentsListed ? " The list has " + documentsListed + " of them." : "");
	}

	function findDocument() {
		const found = foundDocuments();
		if (found.length && !found.includes(reader.document)) showDocument(found[0]);
		else listDocuments();
	}

	// showInDocument shows a citation in its document, with what else stands there.
	function showInDocument(at) {
		const d = data.citations[at].d;
		const mark = marks.get(d).find((m) => m.at === at);
		reader.hidden.delete(mark.field);
		showDocument(d);
		if (reader.list.includes(mark)) selectMark(mark);
		opener = null; // the document is where the reader goes on
		detail.close();
		byId("documents-title").scrollIntoView({ behavior: "instant" });
		byId("document-text").focus({ preventScroll: true });
	}

	// inDocumentButton leads from a quote to its document.
	function inDocumentButton(at) {
		const list = marks.get(data.citations[at].d) || [];
		if (!list.some((mark) => mark.at === at)) return null;
		return element("button", { type: "button", click: () => showInDocument(at) }, "Show in the document");
	}

	function setUpDocuments() {
		collectMarks();
		if (!marked.length) {
			byId("documents").remove();
			return;
		}
		byId("documents").hidden = false;
		byId("documents-title").textContent = (data.report ? "References in their documents (" : "Values in their documents (") + marked.length.toLocaleString("en") + ")";
		byId("value-before").textContent = "Previous " + noun;
		byId("value-after").textContent = "Next " + noun;
		byId("document-slider").setAttribute("aria-label", noun);
		byId("document-keys").textContent = "In the text, the arrow keys to the left and to the right go from " + noun + " to " + noun + ".";
		byId("document-controls").addEventListener("submit", (event) => event.preventDefault());
		byId("document-query").addEventListener("input", findDocument);
		byId("document-name").addEventListener("input", (event) => showDocument(Number(event.target.value)));
		const steps = [
			["document-before", () => showDocument(marked[marked.indexOf(reader.document) - 1])],
			["document-after", () => showDocument(marked[marked.indexOf(reader.document) + 1])],
			["value-before", () => stepTo(-1)], ["value-after", () => stepTo(1)],
		];
		for (const [id, step] of steps) {
			byId(id).addEventListener("click", () => {
				step();
				if (byId(id).disabled) byId("document-text").focus({ preventScroll: true }); // what is disabled loses the focus
			});
		}
		byId("document-slider").addEventListener("input", (event) => selectMark(reader.list[Number(event.target.value) - 1]));
		byId("document-text").addEventListener("keydown", (event) => {
			const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
			if (!step || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
			event.preventDefault();
			stepTo(step);
		});
		showDocument(marked[0]);
	}

