// The workbench: a schema beside documents. What is typed is kept in this browser, checked and tried
// a moment after the last key, and shown by the server's words alone.
"use strict";
(() => {
	const at = (name) => document.getElementById("try-" + name);
	const page = document.getElementById("try");
	const words = page.dataset;
	const editor = at("schema");
	const state = { schema: "", documents: [], unread: [], truth: "", shown: 0, versions: [], job: "", typed: {} };
	const typing = ["paste-name", "paste-text", "field", "provider", "name"]; // fields whose values are kept as they stand
	let last = null; // what the latest answer said
	let stale = null; // why what is shown is not of what stands there

	// ---- asking the server

	async function ask(name, body, plain) {
		const answer = await fetch(words.base + "/" + name, {
			method: "POST", body: plain ? body : JSON.stringify(body), headers: { Accept: "application/json" },
		});
		if (answer.status === 401 && document.getElementById("main").dataset.signIn) {
			await keepNow();
			coditectSignIn();
			return new Promise(() => {}); // the page is left
		}
		const text = await answer.text();
		if (!answer.ok) throw new Refused(text.trim());
		return JSON.parse(text);
	}
	class Refused extends Error {}
	const sample = (more) => ({
		schema: state.schema, truth: state.truth, shown: state.shown,
		documents: state.documents.map(({ name, text }) => ({ name, text })), ...more,
	});
	function say(text, bad) {
		const status = at("status");
		status.textContent = text;
		status.className = bad ? "bad" : "dim";
	}
	const why = (error) => error instanceof Refused ? error.message : words.broken;

	// Only the latest question is answered: an older answer that comes later is thrown away.
	let asked = 0;
	let waiting = null;
	function soon(pause) {
		clearTimeout(waiting);
		waiting = setTimeout(run, pause);
	}
	async function run() {
		clearTimeout(waiting);
		if (!state.schema.trim() && !state.documents.length) { say(""); return; }
		const mine = ++asked;
		page.setAttribute("aria-busy", "true");
		try {
			const answer = await ask("run", sample());
			if (mine !== asked) return;
			last = answer;
			stale = null;
			show(answer);
			if (!state.schema.trim()) say(words.nothing);
			else if (answer.broken) say(words.stale);
			else if (state.documents.length) say(words.figures.replace("%found", answer.found).replace("%wanted", answer.wanted) + score(answer.f1));
			else say("");
		} catch (error) {
			if (mine !== asked) return;
			stale = why(error);
			say(stale, true);
		}
		page.dataset.ran = String(mine);
		page.setAttribute("aria-busy", "false");
	}
	const score = (f1) => f1 === null || f1 === undefined ? "" : " " + words.score.replace("%f1", (100 * f1).toFixed(1));

	// show puts parts of the page in their places. Of a schema that is broken, what was found last stays.
	function show(answer) {
		for (const [name, html] of Object.entries(answer.parts)) {
			if (answer.broken && (name === "results" || name === "shown" || (name === "rows" && !html.includes("<fieldset")))) continue;
			const old = document.getElementById("part-" + name);
			const fresh = new DOMParser().parseFromString(html, "text/html").getElementById("part-" + name);
			if (old && fresh) { coditectPatch(old, fresh); settle(old); }
		}
		drawLines(answer.problems || []);
	}
	// A field that somebody has typed into keeps its value whatever its attribute says.
	function settle(part) {
		for (const field of part.querySelectorAll("[data-what]")) {
			if (field === document.activeElement || field.tagName === "BUTTON") continue;
			if (field.type === "checkbox") field.checked = field.defaultChecked;
			else if (field.tagName === "SELECT") field.value = ([...field.options].find((o) => o.defaultSelected) || field.options[0]).value;
			else field.value = field.defaultValue;
		}
	}
	let problems = [];
	function drawLines(found) {
		problems = found;
		const lines = state.schema.split("\n").length;
		const marked = new Map(found.map((p) => [p.line, p.warning]));
		const out = document.createDocumentFragment();
		for (let i = 1; i <= lines; i++) {
			let line = document.createTextNode(i + "\n");
			if (marked.has(i)) {
				line = document.createElement(marked.get(i) ? "i" : "b");
				line.textContent = "● " + i + "\n";
			}
			out.append(line);
		}
		at("lines").replaceChildren(out);
		at("lines").scrollTop = editor.scrollTop;
	}
	editor.addEventListener("scroll", () => { at("lines").scrollTop = editor.scrollTop; });

	// ---- keeping

	let keeping = null;
	function keep() {
		clearTimeout(keeping);
		keeping = setTimeout(keepNow, 300);
	}
	async function keepNow() {
		clearTimeout(keeping);
		state.typed = Object.fromEntries(typing.map((name) => [name, at(name).value]));
		try { await coditectKept.write(state); page.dataset.unkeptNow = ""; }
		catch { if (!page.dataset.unkeptNow) { page.dataset.unkeptNow = "1"; say(words.unkept, true); } }
	}
	function setSchema(text) {
		if (text === editor.value) return;
		// As if it was typed, so that it can be undone.
		const focused = document.activeElement;
		editor.focus({ preventScroll: true });
		editor.select();
		if (!document.execCommand("insertText", false, text)) editor.value = text;
		if (focused && focused !== editor) focused.focus({ preventScroll: true });
		changed();
	}
	function changed() {
		state.schema = editor.value;
		drawLines(problems);
		keep();
	}
	editor.addEventListener("input", () => { changed(); complete(false); soon(250); });

	// ---- documents

	function drawDocuments() {
		const list = at("documents");
		list.replaceChildren();
		state.documents.forEach((d, i) => {
			const item = document.createElement("li");
			const open = button(d.name, () => { state.shown = i; drawDocuments(); run(); });
			const name = document.createElement("bdi"); // the end of a long name is shown, which tells files apart
			name.dir = "ltr";
			name.textContent = d.name;
			open.replaceChildren(name);
			open.setAttribute("aria-pressed", String(i === state.shown));
			open.setAttribute("aria-label", words.show + " " + d.name);
			const remove = button("×", () => {
				state.documents.splice(i, 1);
				state.shown = Math.max(0, Math.min(state.shown, state.documents.length - 1));
				drawDocuments();
				keep();
				run();
				(at("documents").querySelector("button") || at("files")).focus();
			});
			remove.setAttribute("aria-label", words.remove + " " + d.name);
			item.append(open, remove);
			for (const note of d.notes || []) {
				const small = document.createElement("small");
				small.className = "dim";
				small.textContent = note;
				item.append(small);
			}
			list.append(item);
		});
	}
	function button(text, press) {
		const b = document.createElement("button");
		b.type = "button";
		b.textContent = text;
		b.addEventListener("click", press);
		return b;
	}
	// add takes a document, under a name of its own.
	function add(d, file) {
		let name = d.name;
		for (let n = 2; state.documents.some((other) => other.name === name); n++) name = d.name.replace(/(\.[^.]*)?$/, " (" + n + ")$1");
		state.documents.push({ name, text: d.text, notes: d.notes || [], file });
	}
	async function readFiles(files) {
		const refused = [];
		say(words.busy);
		state.unread = [...files];
		for (const file of files) {
			try { add(await ask("read?name=" + encodeURIComponent(file.name), file, true), file); }
			catch (error) { refused.push(error instanceof Refused ? error.message : file.name + ": " + words.broken); }
			state.unread.shift();
		}
		drawDocuments();
		keep();
		await run();
		if (refused.length) say(refused.join(" "), true);
	}
	at("files").addEventListener("change", async (event) => {
		await readFiles([...event.target.files]);
		event.target.value = "";
	});
	page.addEventListener("dragover", (event) => { if (event.dataTransfer.types.includes("Files")) event.preventDefault(); });
	page.addEventListener("drop", (event) => {
		if (!event.dataTransfer.files.length) return;
		event.preventDefault();
		readFiles([...event.dataTransfer.files]);
	});
	at("paste-add").addEventListener("click", () => {
		const text = at("paste-text").value;
		if (!text.trim()) { at("paste-text").focus(); return; }
		add({ name: at("paste-name").value.trim() || words.pasted + ".txt", text });
		state.shown = state.documents.length - 1;
		at("paste-text").value = at("paste-name").value = "";
		drawDocuments();
		keep();
		run();
	});
	for (const name of typing) at(name).addEventListener("input", keep);
	at("truth").addEventListener("input", () => { state.truth = at("truth").value; keep(); soon(500); });

	// ---- buttons

	at("run").addEventListener("click", run);
	at("infer").addEventListener("click", async () => {
		if (state.schema.trim()) keepVersion();
		try {
			setSchema((await ask("infer", sample({ schema: "" }))).schema);
			await run();
		} catch (error) { say(why(error), true); }
	});
	at("open").addEventListener("change", async (event) => {
		const [file] = event.target.files;
		if (!file) return;
		if (state.schema.trim()) keepVersion();
		setSchema(await file.text());
		event.target.value = "";
		run();
	});
	at("save").addEventListener("click", () => {
		const link = document.createElement("a");
		const json = /^\s*[{[]/.test(state.schema);
		link.href = URL.createObjectURL(new Blob([state.schema], { type: json ? "application/json" : "application/yaml" }));
		link.download = json ? "schema.json" : "schema.yaml";
		link.click();
		setTimeout(() => URL.revokeObjectURL(link.href), 10000);
	});
	at("start").addEventListener("click", async () => {
		await keepNow();
		location.href = words.new + "?from=try";
	});

	// ---- versions

	function keepVersion() {
		if (!state.schema.trim() || state.versions.some((v) => v.schema === state.schema)) return;
		const fresh = last && !last.broken && stale === null;
		state.versions.unshift({
			number: 1 + Math.max(0, ...state.versions.map((v) => v.number)), time: new Date().toISOString(), schema: state.schema,
			found: fresh ? last.found : null, wanted: fresh ? last.wanted : null, f1: fresh ? last.f1 : null,
		});
		state.versions.length = Math.min(state.versions.length, 50);
		drawVersions();
		keep();
	}
	function drawVersions() {
		const rows = state.versions.map((v) => {
			const row = document.createElement("tr");
			const name = cell("th", v.number + " · " + new Date(v.time).toLocaleString());
			name.scope = "row";
			const restore = button(words.restore, () => { keepVersion(); setSchema(v.schema); run(); });
			restore.setAttribute("aria-label", words.restore + " " + v.number);
			const forget = button("×", () => { state.versions = state.versions.filter((other) => other !== v); drawVersions(); keep(); });
			forget.setAttribute("aria-label", words.forget + " " + v.number);
			const does = document.createElement("td");
			does.append(restore, " ", forget);
			row.append(name, cell("td", v.wanted ? v.found + " / " + v.wanted : "–", "number"), cell("td", typeof v.f1 === "number" ? (100 * v.f1).toFixed(1) + " %" : "–", "number"), does);
			return row;
		});
		at("versions").replaceChildren(...rows);
	}
	function cell(tag, text, kind) {
		const c = document.createElement(tag);
		c.textContent = text;
		if (kind) c.className = kind;
		return c;
	}
	at("keep").addEventListener("click", async () => { await run(); keepVersion(); say(words.kept); });

	// ---- the form: each change of it changes the text, and the form follows the text

	async function edit(change) {
		const before = state.schema;
		try {
			const answer = await ask("edit", { schema: before, edit: change });
			if (state.schema !== before) { say(words.differ, true); return; }
			setSchema(answer.schema);
			await run();
		} catch (error) {
			say(why(error), true);
			if (last) settle(document.getElementById("part-rows"));
		}
	}
	const placeOf = (field) => field.closest("[data-at]").dataset.at;
	page.addEventListener("change", (event) => {
		const field = event.target.closest("#part-rows [data-what]");
		if (!field) return;
		edit({ at: placeOf(field), what: field.dataset.what, value: field.type === "checkbox" ? (field.checked ? "true" : "") : field.value });
	});
	page.addEventListener("click", (event) => {
		const press = event.target.closest("#part-rows button[data-what]");
		if (press && press.dataset.what === "remove") edit({ at: placeOf(press), what: "remove" });
		if (press && press.dataset.what === "add") edit({ at: placeOf(press), what: "add", value: freshName() });
		const line = event.target.closest("[data-line]");
		if (line) { event.preventDefault(); goToLine(Number(line.dataset.line)); }
		const quote = event.target.closest("[data-start][data-document]");
		if (quote) { event.preventDefault(); goToQuote(quote); }
	});
	function freshName() {
		let n = 1;
		while (state.schema.includes("field_" + n)) n++;
		return "field_" + n;
	}
	at("field-add").addEventListener("click", () => {
		edit({ at: "", what: "add", value: at("field").value });
		at("field").value = "";
	});
	function goToLine(line) {
		const lines = editor.value.split("\n");
		const start = lines.slice(0, Math.max(0, line - 1)).reduce((n, l) => n + l.length + 1, 0);
		editor.focus();
		editor.setSelectionRange(start, start + (lines[line - 1] || "").length);
		editor.scrollTop = Math.max(0, (line - 4) * editor.scrollHeight / Math.max(1, lines.length));
	}
	async function goToQuote(quote) {
		const wanted = Number(quote.dataset.document);
		if (wanted !== state.shown) { state.shown = wanted; drawDocuments(); await run(); }
		const mark = document.querySelector(`#part-shown mark[data-start="${Number(quote.dataset.start)}"]`);
		if (mark) { mark.scrollIntoView({ block: "center" }); mark.focus({ preventScroll: true }); }
	}

	// ---- completion

	const choices = at("choices");
	const proposals = JSON.parse(words.completions);
	let chosen = -1;
	// context says what may stand where the cursor is, and how much of it is typed.
	function context() {
		const text = editor.value.slice(0, editor.selectionStart);
		const lines = text.split("\n");
		const line = lines[lines.length - 1];
		if (/(^|\s)#/.test(line)) return null;
		const open = line.lastIndexOf("{");
		if (open > line.lastIndexOf("}")) {
			const parent = (/([\w$-]+)"?\s*:\s*$/.exec(line.slice(0, open)) || [])[1] || parentOf(lines, indent(line));
			const part = line.slice(Math.max(open, line.lastIndexOf(",")) + 1);
			return entryOf(part, parent, lines, line);
		}
		return entryOf(line.replace(/^(\s*- )?/, ""), parentOf(lines, indent(line)), lines, line);
	}
	function entryOf(part, parent, lines, line) {
		const value = /^\s*"?([\w$-]+)"?\s*:\s+\[?"?([\w-]*)$/.exec(part);
		if (value) return proposals[value[1]] && value[1] !== "within" ? { list: proposals[value[1]], typed: value[2], value: true } : null;
		const key = /^\s*"?([\w$-]*)$/.exec(part);
		if (!key || ["properties", "$defs", "definitions", "enum", "labels", "required", "values"].includes(parent)) return null;
		let list = proposals.keywords;
		if (parent === "within") list = proposals.within;
		else if (parent === "x-coditect") list = parentOf(lines.slice(0, -1), indent(line) - 1) === "" && indent(line) <= 4 && !line.includes("{") ? proposals.top : proposals.hints;
		return { list, typed: key[1], value: false };
	}
	const indent = (line) => line.length - line.trimStart().length;
	function parentOf(lines, depth) {
		for (let i = lines.length - 2; i >= 0; i--) {
			if (!lines[i].trim() || lines[i].trim().startsWith("#") || indent(lines[i]) >= depth) continue;
			return (/^\s*(?:- )?"?([^":]+)"?\s*:/.exec(lines[i]) || [])[1] || "";
		}
		return "";
	}
	function complete(always) {
		const c = context();
		const found = c && (always || c.typed) ? c.list.filter((name) => name.toLowerCase().startsWith(c.typed.toLowerCase()) && (always || name !== c.typed)) : [];
		if (!found.length) { close(); return; }
		choices.replaceChildren(...found.map((name, i) => {
			const item = document.createElement("li");
			item.id = "try-choice-" + i;
			item.setAttribute("role", "option");
			item.textContent = name;
			item.addEventListener("mousedown", (event) => { event.preventDefault(); take(name, c); });
			return item;
		}));
		choices.hidden = false;
		choose(always ? 0 : -1);
	}
	function choose(i) {
		chosen = i;
		[...choices.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === i)));
		if (i < 0) { editor.removeAttribute("aria-activedescendant"); return; }
		editor.setAttribute("aria-activedescendant", choices.children[i].id);
		choices.children[i].scrollIntoView({ block: "nearest" });
	}
	function close() {
		choices.hidden = true;
		choices.replaceChildren();
		choose(-1);
	}
	function take(name, c) {
		const end = editor.selectionStart;
		editor.setSelectionRange(end - c.typed.length, end);
		const text = c.value || editor.value.slice(end).startsWith(":") ? name : name + ": ";
		if (!document.execCommand("insertText", false, text)) editor.setRangeText(text, end - c.typed.length, end, "end");
		close();
		changed();
		soon(250);
	}
	editor.addEventListener("keydown", (event) => {
		if (event.key === " " && event.ctrlKey) { event.preventDefault(); complete(true); return; }
		if (choices.hidden) return;
		const n = choices.children.length;
		if (event.key === "ArrowDown") { event.preventDefault(); choose((chosen + 1) % n); }
		else if (event.key === "ArrowUp") { event.preventDefault(); choose((chosen + n) % n); }
		else if (event.key === "Escape") { event.preventDefault(); close(); }
		else if (event.key === "Enter" && chosen >= 0) { event.preventDefault(); swallow = true; const c = context(); if (c) take(choices.children[chosen].textContent, c); }
	});
	// The key that has taken a proposal breaks no line, however the browser sends it.
	let swallow = false;
	editor.addEventListener("beforeinput", (event) => { if (swallow && event.inputType === "insertLineBreak") event.preventDefault(); });
	editor.addEventListener("keyup", () => { swallow = false; });
	editor.addEventListener("blur", close);
	page.addEventListener("keydown", (event) => {
		if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
	});

	// ---- with a model: what it would cost first

	let planned = null; // what the cost was said of
	const asJob = (more) => ({ ...sample(more), provider: at("provider").value.trim(), model: at("name").value.trim() });
	at("plan").addEventListener("click", async () => {
		const what = asJob({ plan: true });
		at("paid").textContent = words.busy;
		try {
			const plan = await ask("job", what);
			at("paid").textContent = words.planned.replace("%units", plan.units).replace("%calls", plan.calls).replace("%tokens", plan.tokens)
				.replace("%cost", plan.cost).replace("%most", plan.most_cost) + " " + plan.warnings.join(" ");
			planned = JSON.stringify({ ...what, plan: false, shown: 0, truth: "" });
			at("pay").hidden = false;
		} catch (error) { at("paid").textContent = why(error); at("pay").hidden = true; }
	});
	at("pay").addEventListener("click", async () => {
		const what = asJob({ plan: false });
		// What is paid is what was planned.
		if (JSON.stringify({ ...what, plan: false, shown: 0, truth: "" }) !== planned) { at("pay").hidden = true; at("paid").textContent = words.differ; return; }
		at("pay").hidden = true;
		try {
			const job = await ask("job", what);
			const link = document.createElement("a");
			link.href = job.path;
			link.textContent = job.job;
			const note = document.createElement("span");
			at("paid").replaceChildren(link, " ", note);
			follow(what, job.job, note);
		} catch (error) { at("paid").textContent = why(error); at("pay").hidden = false; }
	});
	async function follow(what, job, note) {
		try {
			const answer = await ask("job", { ...what, job, shown: state.shown });
			if (answer.running) {
				note.textContent = words.running.replace("%done", answer.running);
				setTimeout(() => follow(what, job, note), 500);
				return;
			}
			++asked; // what rules found meanwhile is not shown over it
			last = answer;
			show(answer);
			note.textContent = words.jobdone.replace("%found", answer.found).replace("%wanted", answer.wanted);
		} catch (error) {
			if (error instanceof Refused) { note.textContent = why(error); return; }
			note.textContent = words.broken;
			setTimeout(() => follow(what, job, note), 2000);
		}
	}

	// ---- what was there when the page was left

	// known are the lines of true values that are of the documents here.
	function known(lines) {
		return lines.split("\n").filter((line) => line && state.documents.some((d) => d.name === JSON.parse(line).document)).join("\n");
	}
	async function begin() {
		try {
			const kept = await coditectKept.read();
			if (kept) for (const name of Object.keys(state)) if (kept[name] !== undefined) state[name] = kept[name];
		} catch { /* a browser may keep nothing */ }
		for (const name of typing) at(name).value = state.typed[name] || at(name).value;
		const texts = [...page.querySelectorAll("[data-text]")];
		if (words.job && words.job !== state.job) {
			if (state.schema.trim()) keepVersion();
			state.schema = words.schema;
			state.documents = [];
			state.shown = 0;
			for (const t of texts) {
				try {
					const answer = await fetch(t.dataset.text, { headers: { Accept: "application/json" } });
					const text = await answer.text();
					if (!answer.ok) throw new Refused(text.trim());
					add(JSON.parse(text));
				} catch (error) { say(why(error), true); }
			}
			state.truth = known(words.truth);
			state.job = words.job;
			keep();
		}
		editor.value = state.schema;
		at("truth").value = state.truth;
		drawDocuments();
		drawVersions();
		drawLines([]);
		if (state.unread.length) await readFiles(state.unread); // nobody was signed in when they were chosen
		else await run();
		page.dataset.ready = "1";
	}
	begin();
})();
