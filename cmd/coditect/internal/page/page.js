	// Texts of documents become text nodes only: nothing here reads markup from data.
	const block = document.getElementById("data");
	const data = block.type === "application/json" ? JSON.parse(block.textContent) : await unpacked(block.textContent);
	if (data === null) return;

	// unpacked returns what a text holds as JSON, packed by gzip, in base64. It returns null in a
	// browser that cannot unpack it, and says so.
	async function unpacked(text) {
		if (typeof DecompressionStream === "undefined") {
			const note = document.createElement("p");
			note.className = "note";
			note.append("This browser is too old for the tables of this page, whose data is packed. The same records stand in report.md and result.json.");
			document.querySelector("main").prepend(note);
			return null;
		}
		const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
		return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
	}
	const rowsOfPage = 100;
	const rowsOnPaper = 2000;
	const byId = (id) => document.getElementById(id);

	// element builds an element. Children that are texts become text nodes.
	function element(name, attributes, ...children) {
		const e = document.createElement(name);
		for (const [key, value] of Object.entries(attributes || {})) {
			if (typeof value === "function") e.addEventListener(key, value);
			else if (value !== undefined && value !== false) e.setAttribute(key, value === true ? "" : value);
		}
		e.append(...children.flat().filter((child) => child !== null && child !== undefined));
		return e;
	}

	// visible shows control characters, which a page would swallow.
	function visible(text) {
		return String(text).replace(/\r\n?/g, "\n").replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, (c) =>
			c < " " ? String.fromCharCode(0x2400 + c.charCodeAt(0)) : "\u2421");
	}
	// quoted isolates a text, so that it does not change the direction of its surroundings.
	const quoted = (text) => element("bdi", {}, visible(text));

	// entry returns the entry of a part of a record for a field. A field may have the name of
	// something that all objects have.
	const entry = (part, field) => part && Object.hasOwn(part, field) ? part[field] : undefined;

	const documentName = (i) => data.documents[i] === undefined ? "" : data.documents[i];
	function sourcesOf(record) {
		const names = (record.s || []).map(documentName);
		return names.length > 3 ? names.slice(0, 3).join(", ") + " and " + (names.length - 3) + " more" : names.join(", ");
	}
	const plural = (n, one, many) => n.toLocaleString("en") + " " + (n === 1 ? one : many);

	// ---- records: what is shown of them, in which order

	const records = data.records;
	records.forEach((record, i) => { record.n = i + 1; });
	const view = { query: "", column: "", show: "", sort: "", descending: false, page: 0, matching: [], hidden: new Set() };
	const conditions = {
		unverified: (record) => record.u !== undefined,
		seen: (record) => record.l !== undefined,
		missing: (record) => record.m !== undefined,
		unsure: (record) => Object.values(record.k || {}).some((k) => k < 0.5),
	};
	const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });

	function searchText(record, column) {
		if (column) return (entry(record.v, column) || "").toLowerCase();
		if (record.text === undefined) {
			record.text = [sourcesOf(record), ...Object.values(record.v || {})].join("\n").toLowerCase();
		}
		return record.text;
	}

	function sortKey(record, column) {
		if (column === "#") return record.n;
		const text = column === "source" ? sourcesOf(record) : entry(record.v, column);
		if (text === undefined) return undefined;
		return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
	}

	// compare orders numbers before texts, and what is missing last.
	function compare(a, b, descending) {
		if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
		let order;
		if (typeof a === "number" && typeof b === "number") order = a - b;
		else if (typeof a === "string" && typeof b === "string") order = collator.compare(a, b);
		else order = typeof a === "number" ? -1 : 1;
		return descending ? -order : order;
	}

	function select() {
		const query = view.query.trim().toLowerCase();
		const condition = entry(conditions, view.show) || (() => true);
		view.matching = records.filter((record) => condition(record) && (!query || searchText(record, view.column).includes(query)));
		if (view.sort) {
			const keys = new Map(view.matching.map((record) => [record, sortKey(record, view.sort)]));
			view.matching.sort((a, b) => compare(keys.get(a), keys.get(b), view.descending) || a.n - b.n);
		}
		view.page = Math.min(view.page, Math.max(0, Math.ceil(view.matching.length / rowsOfPage) - 1));
	}

	// ---- the table

	const numberForm = /^[-−]?\d[\d.,\u202f\u00a0]*%?$/;
	// numeric are the fields whose values are numbers, all of them. They stand at the right.
	const numeric = new Set(data.fields.filter((field) => {
		const values = records.map((record) => entry(record.v, field)).filter((value) => value !== undefined);
		return values.length > 0 && values.every((value) => numberForm.test(value));
	}));
	// cellClass says how a value stands in its cell: numbers at the right, and what is short, such as
	// a date, on one line.
	function cellClass(field, value) {
		if (numeric.has(field)) return "number";
		return value !== undefined && value.length <= 16 ? "short" : undefined;
	}
	const shownFields = () => data.fields.filter((field) => !view.hidden.has(field));

	function header(label, column) {
		const sorted = view.sort === column;
		return element("th", { scope: "col", class: numeric.has(column) ? "number" : undefined, "aria-sort": sorted ? (view.descending ? "descending" : "ascending") : undefined },
			element("button", {
				type: "button",
				click: () => {
					view.descending = sorted && !view.descending;
					view.sort = column;
					view.page = 0;
					update();
					byId("table").querySelectorAll("thead button")[["#", "source", ...shownFields()].indexOf(column)].focus();
				},
			}, visible(label)));
	}

	function confidenceBar(k) {
		const bar = element("i");
		bar.style.width = 100 * k + "%"; // the policy allows no style attributes
		return element("span", { class: k < 0.5 ? "confidence low" : "confidence", title: "confidence " + k.toFixed(2) }, bar);
	}

	function valueCell(record, field) {
		const value = entry(record.v, field);
		if (value !== undefined) {
			const k = entry(record.k, field);
			const derived = entry(record.d, field), reviewed = entry(record.x, field);
			const quotes = (entry(record.c, field) || (derived && derived.c) || []).length;
			const label = visible(value) + (derived ? ", derived" : "") + (reviewed ? ", reviewed" : "") + ", " + visible(field) + " of record " + record.n + ", " + plural(quotes, "quote", "quotes");
			return [
				element("button", { type: "button", class: "link", "aria-label": label, click: () => openValue(record, field) }, quoted(value)),
				derived ? element("span", { class: "derived", title: visible(derived.t) }, " derived") : null,
				reviewed ? element("span", { class: "derived", title: visible(reviewed) }, " reviewed") : null,
				k === undefined ? null : confidenceBar(k),
			];
		}
		const seen = entry(record.l, field);
		if (seen) return [element("a", { class: "bad", href: "#seen" }, "seen, not found"), " ", element("span", { class: "dim" }, quoted(seen.v))];
		if (entry(record.u, field) !== undefined) return [element("a", { class: "bad", href: "#unverified" }, "not verified")];
		const why = entry(record.m, field);
		return [element("span", { class: "dim" }, "–", why ? element("span", {}, " ", quoted(why)) : null)];
	}

	function row(record) {
		return element("tr", { id: "r" + record.n },
			element("th", { scope: "row" }, element("button", {
				type: "button", class: "link", "aria-label": "Record " + record.n, click: () => openRecord(record),
			}, String(record.n))),
			element("td", { "data-label": "source" }, quoted(sourcesOf(record))),
			shownFields().map((field) => element("td", { "data-label": visible(field), class: cellClass(field, entry(record.v, field)) }, valueCell(record, field))));
	}

	function table(shown) {
		return element("table", {},
			element("thead", {}, element("tr", {}, header("#", "#"), header("source", "source"), shownFields().map((field) => header(field, field)))),
			element("tbody", {}, shown.map(row)));
	}

	function pageButton(label, page, enabled) {
		return element("button", {
			type: "button", disabled: !enabled,
			click: () => { view.page = page; update(); byId("records-title").focus(); },
		}, label);
	}

	function update() {
		select();
		const first = view.page * rowsOfPage;
		const shown = view.matching.slice(first, first + rowsOfPage);
		byId("table").replaceChildren(records.length ? table(shown) : element("p", {}, "There are no records."));
		const left = data.more ? " " + plural(data.more, "more record is", "more records are") + " only in result.json, as the size of this page is limited." : "";
		byId("count").textContent = (view.matching.length === records.length
			? plural(records.length, "record.", "records.")
			: view.matching.length.toLocaleString("en") + " of " + plural(records.length, "record.", "records.")) + left;
		const last = Math.max(0, Math.ceil(view.matching.length / rowsOfPage) - 1);
		const pages = byId("pages");
		pages.hidden = last === 0;
		pages.replaceChildren(
			pageButton("First", 0, view.page > 0), pageButton("Previous", view.page - 1, view.page > 0),
			element("span", {}, "Page " + (view.page + 1) + " of " + (last + 1)),
			pageButton("Next", view.page + 1, view.page < last), pageButton("Last", last, view.page < last));
	}

	// ---- the rows that match, for other programs

	// safeCell returns a text that no spreadsheet takes for a formula. Spreadsheets take full-width signs
	// for others, and pass over what does not show.
	function safeCell(text) {
		const shown = text.replace(/^[\p{Cf}\p{Zs}\p{Mn}]+/u, "");
		const isFormula = /^[=@＝＠﹦﹫\t\r\n]/.test(shown) || /^[+\-＋－﹢﹣−]/.test(shown) && !numberForm.test(text);
		return isFormula ? "'" + text : text;
	}
	// csvCell returns a text as a cell of CSV.
	function csvCell(text) {
		const safe = safeCell(text);
		return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
	}
	// csvText returns the rows that match, with the columns that are shown.
	function csvText() {
		const lines = [["source", ...shownFields()]];
		for (const record of view.matching) {
			lines.push([(record.s || []).map(documentName).join("; "), ...shownFields().map((field) => entry(record.v, field) || "")]);
		}
		return lines.map((cells) => cells.map(csvCell).join(",")).join("\r\n") + "\r\n";
	}
	function saveRows() {
		const link = element("a", { href: URL.createObjectURL(new Blob(["\ufeff" + csvText()], { type: "text/csv" })), download: "records.csv" });
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 60000);
	}
	// copyRows copies the rows as lines with tabs, as spreadsheets paste them.
	async function copyRows() {
		const cells = (text) => safeCell(text.replace(/\s+/g, " "));
		const text = [["source", ...shownFields()].join("\t"), ...view.matching.map((record) =>
			[sourcesOf(record), ...shownFields().map((field) => entry(record.v, field) || "")].map(cells).join("\t"))].join("\n");
		const box = element("textarea", { "aria-label": "Rows" });
		box.value = text;
		document.body.append(box);
		box.select();
		const copied = navigator.clipboard ? await navigator.clipboard.writeText(text).then(() => true, () => document.execCommand("copy")) : document.execCommand("copy");
		box.remove();
		byId("count").textContent = copied ? plural(view.matching.length, "row was copied.", "rows were copied.") : "This browser does not let the page copy; save the rows instead.";
	}
	function columnChoices() {
		return data.fields.map((field) => element("label", {}, element("input", {
			type: "checkbox", checked: true,
			input: (event) => {
				if (event.target.checked) view.hidden.delete(field);
				else view.hidden.add(field);
				update();
			},
		}), " ", quoted(field)));
	}

	// ---- quotes

	// isAligned reports whether a text has columns of its own, which letters of one width keep.
	const isAligned = (text) => (text.match(/\S {3,}\S/g) || []).length >= 3 || /^\|.*\|$/m.test(text);

	// position returns the index in a string of its code point n.
	function position(text, n) {
		let i = 0;
		for (; n > 0 && i < text.length; n--) i += text.codePointAt(i) > 0xffff ? 2 : 1;
		return i;
	}

	// passage shows a quote in its document: in all of it if the page has it, or between
	// the texts before and after it.
	function passage(c) {
		const whole = (data.texts || {})[c.d];
		let before = c.b || "", after = c.a || "";
		if (whole !== undefined) {
			before = whole.slice(0, position(whole, c.s));
			after = whole.slice(position(whole, c.e));
		}
		const hasMore = whole === undefined;
		return element("blockquote", { class: isAligned(before.slice(-2000) + c.q + after.slice(0, 2000)) ? "text aligned" : "text", tabindex: "0", "aria-label": "Text of " + visible(documentName(c.d)) },
			element("bdi", {}, hasMore && before ? "…" : "", visible(before), element("mark", {}, visible(c.q)), visible(after), hasMore && after ? "…" : ""));
	}

	// drawnPages shows the pages on which a quote stands, with its places marked.
	function drawnPages(c) {
		const boxes = c.z || [];
		return (data.pages || []).filter((p) => p.d === c.d && boxes.some((z) => z[0] === p.n)).map((p) => {
			const shown = element("div", { class: "page" }, element("img", {
				src: p.u, alt: "Page " + p.n + " of " + visible(documentName(p.d)) + ", with the quote marked",
			}));
			for (const [, left, top, right, bottom] of boxes.filter((z) => z[0] === p.n)) {
				const box = element("i", {});
				const set = (name, points, of) => { box.style[name] = 100 * points / of + "%"; }; // the policy allows no style attributes
				set("left", left - 1, p.w);
				set("top", top - 1, p.h);
				set("width", right - left + 2, p.w);
				set("height", bottom - top + 2, p.h);
				shown.append(box);
			}
			return element("div", { class: "paper", role: "group", tabindex: "0", "aria-label": "Picture of page " + p.n }, shown);
		});
	}

	const gradeText = (c) => c.g + (c.y ? " (" + Math.round(100 * c.y) + " % of the words)" : "");

	function citation(i) {
		const c = data.citations[i];
		if (!c || !c.q) return element("p", { class: "note" }, "The quote is only in result.json, as the size of this page is limited.");
		const notes = [c.p, "characters " + c.s + "–" + c.e, gradeText(c),
			c.x ? "not in the chunk that was read" : null, c.o ? "or at one of " + c.o + " other places" : null, c.r];
		return element("figure", {}, drawnPages(c), passage(c),
			element("figcaption", {}, quoted(documentName(c.d)), ": ", quoted(notes.filter(Boolean).join(", ")), " ", inDocumentButton(i)));
	}

	const detail = byId("detail");
	let opener = null;
	function open(title, ...content) {
		opener = detail.open ? opener : document.activeElement;
		byId("detail-body").replaceChildren(
			element("header", {}, element("h2", { id: "detail-title", tabindex: "-1" }, title),
				element("button", { type: "button", click: () => detail.close() }, "Close")),
			...content.flat());
		if (!detail.open) detail.showModal();
		byId("detail-title").focus();
		for (const mark of detail.querySelectorAll("mark")) {
			const box = mark.closest(".text");
			box.scrollTop = mark.offsetTop - box.offsetTop - box.clientHeight / 3;
		}
		for (const paper of detail.querySelectorAll(".paper")) {
			// Before it is decoded, the picture has no height.
			paper.querySelector("img").decode().then(() => { paper.scrollTop = paper.querySelector("i").offsetTop - paper.clientHeight / 3; }, () => {});
		}
	}
	detail.addEventListener("close", () => { if (opener) opener.focus(); opener = null; });
	detail.addEventListener("click", (event) => { if (event.target === detail) detail.close(); });

	function confidenceText(record, field) {
		const k = entry(record.k, field), said = entry(record.w, field);
		return (k === undefined ? "" : "confidence " + k.toFixed(2)) + (said === undefined ? "" : " (the extractor says " + said.toFixed(2) + ")");
	}

	function openValue(record, field) {
		const derived = entry(record.d, field);
		const refs = (entry(record.c, field) || []).concat(derived ? derived.c : []);
		open([quoted(field), " of record " + record.n],
			element("p", {}, element("strong", {}, quoted(entry(record.v, field))), " ", element("span", { class: "dim" }, confidenceText(record, field))),
			derived ? element("p", { class: "note" }, quoted(derived.t)) : null,
			entry(record.x, field) ? element("p", { class: "note" }, quoted(entry(record.x, field))) : null,
			refs.length ? refs.map(citation) : entry(record.x, field) ? null : element("p", { class: "note" }, "This value has no quote: it was computed from other values."));
	}

	function openRecord(record) {
		const fields = data.fields.filter((field) => [record.v, record.m, record.u, record.l].some((part) => entry(part, field) !== undefined));
		open("Record " + record.n,
			element("p", {}, "From ", quoted((record.s || []).map(documentName).join(", ")), "."),
			element("table", {}, element("tbody", {}, fields.map((field) =>
				element("tr", {}, element("th", { scope: "row" }, quoted(field)), element("td", {}, valueCell(record, field)))))));
	}

	// ---- the report

	// referenceParts cuts a text at its references, which are numbers in brackets. Brackets in
	// code and addresses are left alone.
	const referenceParts = /(`[^`]*`|https?:\/\/\S+|\[\d+(?:, ?\d+)*\])/;

	// referenceNumbers returns the numbers of such a part; none if one of them is of no
	// reference.
	function referenceNumbers(part) {
		const numbers = /^\[\d/.test(part) ? part.slice(1, -1).split(",").map(Number) : [];
		return numbers.some((n) => n < 1 || n > data.report.references.length) ? [] : numbers;
	}

	// withReferences turns the references of a text into buttons that open quotes.
	function withReferences(text) {
		return text.split(referenceParts).map((part) => {
			const numbers = referenceNumbers(part);
			if (!numbers.length) return visible(part);
			return ["[", numbers.map((n, i) => [i ? ", " : "", element("button", {
				type: "button", class: "link", "aria-label": "Reference " + n, click: () => openReference(n),
			}, String(n))]), "]"].flat(2);
		}).flat();
	}

	function openReference(n) {
		const reference = data.report.references[n - 1];
		open("Reference " + n, element("p", {}, quoted(reference.source)), citation(reference.citation));
	}

	// sentences marks the claims in a paragraph that their references do not support.
	function sentences(section, text) {
		const parts = [];
		let rest = text;
		for (const claim of data.report.claims.filter((c) => c.section === section && c.grade !== "supported")) {
			const at = rest.indexOf(claim.text);
			if (at < 0) continue;
			const why = claim.grade + (claim.reasons ? ": " + claim.reasons.join("; ") : "");
			parts.push(withReferences(rest.slice(0, at)), element("span", { class: claim.grade, title: visible(why) }, withReferences(claim.text)),
				element("span", { class: "grade bad" }, " (" + claim.grade + ")"));
			rest = rest.slice(at + claim.text.length);
		}
		return element("bdi", {}, [parts, withReferences(rest)].flat(2));
	}

	// sectionCell is a cell of a table of the report. Dates and other short texts stand on one line, and an
	// address is cut, so that it leaves the room to what is said; its title has it whole.
	function sectionCell(cell) {
		if (/^https?:\/\/\S+$/.test(cell)) return element("td", { class: "address", title: visible(cell) }, quoted(cell));
		return element("td", { class: cell.length <= 16 ? "short" : undefined }, withReferences(cell));
	}

	function sectionTable(s) {
		return element("div", { class: "wide", tabindex: "0", role: "region", "aria-label": visible(s.title) }, element("table", {},
			element("thead", {}, element("tr", {}, s.columns.map((c) => element("th", { scope: "col" }, quoted(c))))),
			element("tbody", {}, (s.rows || []).map((row) => element("tr", {}, row.map(sectionCell))))));
	}

	// sourcesOfReport returns each source once, with the numbers by which the report refers to it.
	function sourcesOfReport() {
		const sources = new Map();
		data.report.references.forEach((r, i) => {
			if (!sources.has(r.source)) sources.set(r.source, { source: r.source, numbers: [] });
			sources.get(r.source).numbers.push(i + 1);
		});
		return [...sources.values()];
	}

	function writeReport() {
		const report = data.report;
		byId("report-body").replaceChildren(
			...report.sections.flatMap((s, i) => [
				i || (s.items || []).length ? element("h3", {}, quoted(s.title)) : null,
				...(s.text || "").split(/\n\s*\n/).filter(Boolean).map((p) => element("p", {}, sentences(s.name, p))),
				(s.items || []).length ? element("ul", {}, s.items.map((item) => element("li", {}, quoted(item)))) : null,
				(s.columns || []).length ? sectionTable(s) : null,
			]).filter(Boolean),
			element("h3", {}, "References"),
			element("ul", { class: "references" }, sourcesOfReport().map(({ source, numbers }) => element("li", {}, quoted(source), " ",
				numbers.map((n, i) => [i ? ", " : "", element("button", { type: "button", class: "link", click: () => openReference(n) }, "Passage " + n)]).flat()))),
			element("h3", {}, "Check of the claims"), element("p", {}, quoted(report.summary)));
		const doubtful = report.claims.filter((c) => c.grade !== "supported");
		if (doubtful.length) {
			listSection("claims", "Claims that are not supported", ["claim", "grade", "why"], doubtful.length, 0, (i) =>
				[withReferences(doubtful[i].text), quoted(doubtful[i].grade), quoted((doubtful[i].reasons || []).join("; "))]);
		}
	}

	// ---- what stands below the records

	// listSection builds a section with a table that grows on request.
	function listSection(id, title, columns, total, more, cells) {
		const body = element("tbody");
		let shown = 0;
		const button = element("button", { type: "button", click: () => grow(rowsOfPage) });
		function grow(n) {
			const until = Math.min(total, shown + n);
			for (; shown < until; shown++) body.append(element("tr", {}, cells(shown).map((cell) => element("td", {}, cell))));
			button.hidden = shown === total;
			button.textContent = "Show more (" + (total - shown).toLocaleString("en") + ")";
		}
		grow(rowsOfPage);
		addEventListener("beforeprint", () => grow(rowsOnPaper));
		byId("rest").append(element("section", { id, "aria-labelledby": id + "-title" },
			element("h2", { id: id + "-title" }, title + " (" + (total + more).toLocaleString("en") + ")"),
			element("div", { class: "scroll", role: "group", "aria-labelledby": id + "-title", tabindex: "0" },
				element("table", {}, element("thead", {}, element("tr", {}, columns.map((c) => element("th", { scope: "col" }, visible(c))))), body)),
			button,
			more ? element("p", { class: "note" }, plural(more, "more is", "more are") + " only in result.json, as the size of this page is limited.") : null));
	}

	function quotesButton(refs, what) {
		if (!refs || !refs.length) return "";
		return element("button", { type: "button", class: "link", click: () => open(what, refs.map(citation)) }, plural(refs.length, "quote", "quotes"));
	}

	function unverifiedSection() {
		const list = records.flatMap((record) => Object.entries(record.u || {}).map(([field, value]) => ({ record, field, value })));
		if (!list.length) return;
		listSection("unverified", "Values that are not verified", ["record", "field", "value that was given", "why"], list.length, 0, (i) => {
			const { record, field, value } = list[i];
			return [element("button", { type: "button", class: "link", click: () => openRecord(record) }, "record " + record.n),
				quoted(field), quoted(value), quoted(entry(record.m, field) || "no quote supports it")];
		});
	}

	function seenSection() {
		const list = records.flatMap((record) => Object.entries(record.l || {}).map(([field, seen]) => ({ record, field, seen })));
		if (!list.length) return;
		listSection("seen", "Seen in pictures, and not found", ["record", "field", "value that a model read", "where"], list.length, 0, (i) => {
			const { record, field, seen } = list[i];
			return [element("button", { type: "button", class: "link", click: () => openRecord(record) }, "record " + record.n),
				quoted(field), quoted(seen.v), quoted(seen.w)];
		});
	}

	function conflictsSection() {
		if (!data.conflicts.length) return;
		const candidate = (c) => element("div", {}, quoted(c.v), c.k ? " (" + c.k.toFixed(2) + ") " : " ", quotesButton(c.c, "Quotes of a candidate"));
		listSection("conflicts", "Conflicts", ["field", "record", "candidates", "chosen", "by", "why"], data.conflicts.length, data.more_conflicts || 0, (i) => {
			const c = data.conflicts[i];
			return [quoted(c.field), quoted(c.key), c.candidates.map(candidate), quoted(c.chosen), quoted(c.strategy), quoted(c.rationale)];
		});
	}

	function picturesSection() {
		const pictures = data.pictures || [];
		if (!pictures.length) return;
		byId("rest").append(element("section", { id: "pictures", "aria-labelledby": "pictures-title" },
			element("h2", { id: "pictures-title" }, "Pictures (" + pictures.length + ")"),
			pictures.map((p) => element("figure", {},
				element("img", { src: "data:" + p.media + ";base64," + p.data, alt: "The page " + visible(p.title || p.place) + " as the agent saw it" }),
				element("figcaption", {}, quoted(p.title), " ", quoted(p.place))))));
	}

	// ---- controls

	function setUpRecords() {
		byId("columns").append(...columnChoices());
		byId("copy").addEventListener("click", copyRows);
		byId("save").addEventListener("click", saveRows);
		byId("column").append(...data.fields.map((field) => element("option", { value: field }, visible(field))));
		byId("controls").hidden = records.length === 0;
		byId("controls").addEventListener("submit", (event) => event.preventDefault());
		for (const [id, name] of [["query", "query"], ["column", "column"], ["show", "show"]]) {
			byId(id).addEventListener("input", (event) => { view[name] = event.target.value; view.page = 0; update(); });
		}
		document.addEventListener("keyup", (event) => {
			if (event.key === "/" && !detail.open && !/^(INPUT|SELECT)$/.test(document.activeElement.tagName)) {
				byId("query").focus();
			}
		});
		addEventListener("beforeprint", () => byId("table").replaceChildren(table(view.matching.slice(0, rowsOnPaper))));
		addEventListener("afterprint", update);
		update();
	}

