// A review: one value at a time beside its document. A decision is kept in the browser until the server
// has stored it, so none is lost while the server is away.
"use strict";
(() => {
	const page = document.getElementById("review");
	const at = (id) => document.getElementById(id);
	const words = page.dataset;
	const word = (name) => words[name.replace(/-(.)/g, (_, c) => c.toUpperCase())];
	// Of each caller there are decisions of its own: nobody sends those of somebody else.
	const store = "coditect.review." + words.decide + "." + words.caller;
	const around = 100000; // bytes of a text on either side of a passage
	let queue = null, now = 0, shown = null, selected = null, sending = false;
	const history = [];
	const texts = new Map();
	const picture = coditectPicture(at("picture"));
	let outbox = JSON.parse(localStorage.getItem(store) || "[]");

	const key = () => crypto.randomUUID ? crypto.randomUUID() : Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(16)).join("");
	const trouble = (text) => { at("trouble").textContent = text; at("trouble").hidden = !text; };
	const fill = (text, values) => text.replace(/%(\w+)/g, (_, name) => values[name]);
	// The numbers of a script are not exact, so values are kept as they are written, as JSON.
	const plain = (json) => json === "null" ? words.none : json.startsWith("\"") ? JSON.parse(json) : json;
	const missing = (item) => item.model === "null";

	async function load() {
		const first = new URL(words.queue, location.href);
		first.searchParams.set("first", "1");
		const answer = await fetch(first);
		if (answer.status === 401 && leave()) return;
		if (!answer.ok) return trouble(await answer.text());
		queue = await answer.json();
		queue.items = queue.items || [];
		for (const sent of outbox) apply(sent);
		// What waits of a job that goes on becomes more while one decides, and others decide as well.
		// Of a large result only the first values have come.
		coditectFollow(grow, queue.cut ? "" : document.getElementById("part-head").dataset.version);
		begin();
	}

	// begin shows the first value that is left, if there is any.
	function begin() {
		at("desk").hidden = queue.items.length === 0;
		if (queue.items.length === 0) return void (at("progress").textContent = words.empty);
		now = Math.max(0, queue.items.findIndex((item) => !item.verdict));
		resumeTyping();
		if (!words.decide) return trouble(words.looking);
		claim().then(() => { if (held(queue.items[now]) && !at("right").value) move(1); });
		send();
	}

	// grow adds the values that wait by now, and what others have decided.
	async function grow() {
		const name = (item) => item.record + " " + item.field;
		const unsent = outbox.map(name), asked = performance.now();
		const answer = await fetch(words.queue);
		if (!answer.ok) throw new Error(String(answer.status));
		const fresh = await answer.json();
		const had = new Map(queue.items.map((item) => [name(item), item]));
		const mine = new Set([...unsent, ...outbox.map(name)]); // the answer may know nothing of these
		const began = queue.items.length > 0;
		for (const item of fresh.items || []) {
			const old = had.get(name(item));
			if (!old) queue.items.push(item);
			else if (!mine.has(name(item)) && !(old.touched > asked)) Object.assign(old, { verdict: item.verdict, right: item.right, by: item.by });
		}
		queue.sample = fresh.sample;
		queue.agreement = fresh.agreement;
		queue.values = fresh.values;
		if (began) status();
		else begin();
	}

	// What one is about to decide is held for some minutes, so that others pass it over; it lapses by itself when one
	// goes away. Nothing depends on it: whatever is decided counts.
	const ahead = 10; // records
	let claims = new Map(), claiming = false;
	const held = (item) => { const c = claims.get(item.record); return c && !c.own && c.end > Date.now(); };
	async function claim() {
		if (claiming || !words.claim) return;
		claiming = true;
		const next = new Set();
		for (let i = now; i < queue.items.length && next.size < ahead; i++) {
			if (!queue.items[i].verdict && !held(queue.items[i])) next.add(queue.items[i].record);
		}
		const form = new URLSearchParams();
		for (const record of next) form.append("record", record);
		const answer = await fetch(words.claim, { method: "POST", body: form, headers: { Accept: "application/json" } }).catch(() => null);
		// The server says how long each is held yet, as clocks differ.
		if (answer && answer.ok) claims = new Map((await answer.json()).map((c) => [c.record, { ...c, end: Date.now() + c.left }]));
		claiming = false;
		showHeld();
	}
	// reclaim holds on to the record that is shown, and those behind it, a minute or two before that lapses.
	function reclaim(item) {
		const c = claims.get(item.record);
		if (words.decide && !item.verdict && !held(item) && !(c && c.end - Date.now() > 120000)) claim();
	}
	function showHeld() {
		const others = new Map();
		for (const c of claims.values()) {
			if (c.own || c.end <= Date.now() || !queue.items.some((i) => i.record === c.record && !i.verdict)) continue;
			const of = others.get(c.by) || { by: c.by, n: 0, end: 0 };
			others.set(c.by, { by: c.by, n: of.n + 1, end: Math.max(of.end, c.end) });
		}
		at("held").textContent = [...others.values()].map((o) => fill(words.held, { by: o.by, n: o.n, end: new Date(o.end).toLocaleTimeString() })).join(" ");
		at("held").hidden = others.size === 0;
	}

	// leave goes to where one signs in, with what was being typed. Decisions are kept already.
	function leave() {
		const item = queue && queue.items[now];
		if (item && at("right").value) sessionStorage.setItem(store, JSON.stringify({ record: item.record, field: item.field, text: at("right").value }));
		return coditectSignIn();
	}
	function resumeTyping() {
		const typed = JSON.parse(sessionStorage.getItem(store) || "null");
		sessionStorage.removeItem(store);
		const index = typed ? queue.items.findIndex((i) => i.record === typed.record && i.field === typed.field) : -1;
		if (index >= 0) now = index;
		show();
		if (index < 0) return;
		at("right").value = typed.text;
		at("right").focus();
	}

	function apply(sent) {
		const item = queue.items.find((i) => i.record === sent.record && i.field === sent.field);
		if (!item) return;
		item.verdict = sent.verdict === "withdraw" ? "" : sent.verdict;
		item.right = sent.value;
		item.touched = performance.now();
	}

	async function show() {
		const item = queue.items[now];
		selected = null;
		shown = item;
		at("field").textContent = item.field;
		at("number").textContent = "#" + item.number;
		at("document").textContent = item.document;
		at("value").textContent = plain(item.model);
		at("why").textContent = word("why-" + item.why) + (item.confidence === undefined ? "" : " · " + item.confidence.toFixed(2));
		at("right").value = "";
		const rubric = Array.from(at("rubrics").children).find((li) => li.dataset.field === item.field);
		at("rubric").textContent = rubric ? rubric.textContent : "";
		status();
		showPage(item);
		await showText(item);
	}

	// showPage shows the page that the value stands on, if there is a picture of it. The server draws the one
	// of the next value meanwhile.
	function showPage(item) {
		const path = (of) => words.picture + "?" + new URLSearchParams({ document: of.document, page: of.page });
		if (!item.page) return picture.hide();
		picture.show(path(item), item.boxes, fill(words.says, { page: item.page, quote: item.quote }));
		const next = queue.items[now + 1];
		if (next && next.page && path(next) !== path(item)) fetch(path(next), { method: "HEAD" }).catch(() => {}); // it is asked for again
	}

	function status() {
		const item = queue.items[now];
		at("decided").textContent = item.verdict ? (word("done-" + item.verdict) || item.verdict) + (item.right ? ": " + plain(item.right) : "") : "";
		const decided = queue.items.filter((i) => i.verdict).length;
		const doubtful = queue.items.filter((i) => !i.verdict && i.why !== "sample").length;
		// What is not stored yet is in no table: nothing is done before.
		at("done").hidden = decided < queue.items.length || outbox.length > 0;
		at("others").hidden = decided >= queue.values;
		at("finished").textContent = fill(decided < queue.values ? words.someDone : words.allDone, { decided, values: queue.values });
		at("progress").textContent = fill(words.progress, { now: now + 1, decided, all: queue.items.length, doubtful }) + (outbox.length ? " · " + fill(words.waiting, { n: outbox.length }) : "");
		at("progress").dataset.waiting = outbox.length;
		at("progress").dataset.decided = decided;
		const s = queue.sample, a = queue.agreement, parts = [];
		if (s.decided) parts.push(fill(words.share, { right: s.right, decided: s.decided, chosen: s.chosen, low: Math.round(100 * s.low), high: Math.round(100 * s.high) }));
		if (a.values) parts.push(fill(words.agree, { same: a.same, values: a.values, kappa: a.kappa.toFixed(2) }));
		at("figures").textContent = parts.join(" · ");
	}

	async function showText(item) {
		const name = item.unit + "\u0000" + item.document;
		if (!texts.has(name)) {
			if (texts.size > 20) texts.clear();
			texts.set(name, fetch(words.text + "?" + new URLSearchParams({ unit: item.unit, document: item.document })).then(async (answer) => answer.ok ? new Uint8Array(await answer.arrayBuffer()) : Promise.reject(new Error(await answer.text()))));
		}
		let bytes;
		try {
			bytes = await texts.get(name);
		} catch (e) {
			texts.delete(name);
			if (shown === item) at("text").textContent = e.message;
			return;
		}
		if (shown !== item) return; // another value is shown by now
		const from = edge(bytes, Math.max(0, item.start - around)), to = edge(bytes, Math.min(bytes.length, Math.max(item.end, from) + around));
		const cut = (a, b) => new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(a, b));
		const mark = document.createElement("mark");
		mark.className = "here";
		mark.textContent = cut(item.start, item.end);
		const text = at("text");
		text.dataset.from = from;
		text.replaceChildren(cut(from, item.end ? item.start : to), ...(item.end ? [mark, cut(item.end, to)] : []));
		text.dataset.item = item.record + " " + item.field;
		if (item.end) mark.scrollIntoView({ block: "center" });
	}
	const edge = (bytes, i) => { while (i > 0 && i < bytes.length && (bytes[i] & 0xc0) === 0x80) i--; return i; };

	// The marked passage of the text: what it says, and which bytes of the document it is.
	function marked() {
		const choice = getSelection();
		if (!choice.rangeCount || choice.isCollapsed) return null;
		const range = choice.getRangeAt(0);
		if (!at("text").contains(range.commonAncestorContainer)) return null;
		const before = document.createRange();
		before.setStart(at("text"), 0);
		before.setEnd(range.startContainer, range.startOffset);
		const length = (s) => new TextEncoder().encode(s).length;
		const text = range.toString(), trimmed = text.trim();
		if (!trimmed) return null;
		const start = Number(at("text").dataset.from) + length(before.toString()) + length(text.slice(0, text.indexOf(trimmed)));
		return { text: trimmed, start, end: start + length(trimmed) };
	}

	function decide(verdict, item, value, passage) {
		const sent = { record: item.record, field: item.field, verdict, request: key(), was: { verdict: item.verdict || "", right: item.right } };
		if (verdict !== "withdraw") sent.model = item.model;
		if (value !== undefined) sent.value = value;
		if (passage) Object.assign(sent, { document: item.document, unit: item.unit, start: passage.start, end: passage.end });
		outbox.push(sent);
		keep();
		apply(sent);
		if (verdict !== "withdraw") {
			history.push(now);
			move(1);
		} else {
			status();
		}
		send();
	}
	const keep = () => localStorage.setItem(store, JSON.stringify(outbox));

	// Decisions are sent in order, one after the other, and again until the server has said what became of each.
	async function send() {
		if (sending) return;
		sending = true;
		for (let wait = 100; outbox.length > 0;) {
			const { was, ...sent } = outbox[0];
			let answer = null;
			try {
				answer = await fetch(words.decide, { method: "POST", body: new URLSearchParams(sent), headers: { Accept: "application/json" } });
			} catch { /* the server is away */ }
			if (answer && answer.status === 401 && leave()) break;
			if (!answer || answer.status >= 500 || answer.status === 429 || answer.status === 401) {
				// What the server itself says is shown: a proxy has pages of its own for this.
				const says = answer && answer.status !== 401 && (answer.headers.get("Content-Type") || "").startsWith("text/plain");
				trouble(says ? (await answer.text()).trim() + " " + words.kept : words.failed);
				await new Promise((resolve) => { setTimeout(resolve, wait); });
				wait = Math.min(2000, 2 * wait);
				continue;
			}
			outbox.shift();
			keep();
			if (answer.ok) trouble("");
			else refused(sent, was, await answer.text());
			wait = 100;
			status();
		}
		sending = false;
		if (outbox.length === 0 && queue.items.every((i) => i.verdict)) await readFigures();
	}

	// refused goes back to a value whose decision the service does not take, and keeps what was typed.
	function refused(sent, was, why) {
		const index = queue.items.findIndex((i) => i.record === sent.record && i.field === sent.field);
		if (index < 0) return trouble(sent.field + ": " + why);
		const item = queue.items[index];
		item.verdict = was.verdict;
		item.right = was.right;
		trouble(sent.field + " #" + item.number + ": " + why);
		if (document.activeElement === at("right")) return; // the next correction is being typed
		now = index;
		show();
		if (sent.verdict !== "correct" || sent.start !== undefined) return;
		at("right").value = plain(sent.value);
		at("right").focus();
	}

	// readFigures reads how good the values are, as soon as all are decided.
	async function readFigures() {
		const answer = await fetch(words.queue).catch(() => null);
		if (!answer || !answer.ok) return; // they are those of before
		const fresh = await answer.json();
		queue.sample = fresh.sample;
		queue.agreement = fresh.agreement;
		status();
	}

	function move(by) {
		const last = queue.items.length - 1, next = Math.min(last, Math.max(0, now + by));
		now = next;
		while (now > 0 && now < last && held(queue.items[now])) now += Math.sign(by); // others are at these
		if (held(queue.items[now])) now = next;
		reclaim(queue.items[now]);
		show();
	}

	function correct(item, text, passage) {
		let value = JSON.stringify(text);
		if (!item.texts && !passage && /^[[{\-0-9]/.test(text)) {
			try {
				JSON.parse(text);
				value = text; // a number stays as it is written
			} catch { /* it is a text that the service reads as a value of the field */ }
		}
		decide("correct", item, value, passage);
	}

	const does = {
		accept: (item) => decide(missing(item) ? "absent" : "accept", item),
		reject: (item) => decide(missing(item) ? "absent" : "reject", item),
		absent: (item) => decide("absent", item),
		correct: (item) => {
			const passage = marked();
			if (passage) return correct(item, passage.text, passage);
			at("right").value = missing(item) ? "" : plain(item.model);
			at("right").focus();
			at("right").select();
		},
		undo: () => {
			if (history.length) now = history.pop();
			const item = queue.items[now];
			if (item.verdict) decide("withdraw", item);
			show();
		},
		next: () => move(1),
		back: () => move(-1),
		help: () => { at("keys").hidden = !at("keys").hidden; },
	};
	const byKey = { a: "accept", c: "correct", r: "reject", n: "absent", u: "undo", j: "next", s: "next", ArrowRight: "next", k: "back", ArrowLeft: "back", "?": "help" };

	const looks = ["next", "back", "help"]; // what those do who may not decide
	const act = (name) => { if (queue && queue.items.length && (words.decide || looks.includes(name))) does[name](queue.items[now]); };
	document.addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey) return;
		if (e.target === at("right")) {
			if (e.key === "Escape") at("right").blur();
			return;
		}
		if (/^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName) || !byKey[e.key]) return;
		if (e.target === at("text") && e.shiftKey && e.key.startsWith("Arrow")) return; // marks a passage
		e.preventDefault();
		act(byKey[e.key]);
	});
	page.querySelectorAll("[data-key]").forEach((b) => {
		b.addEventListener("mousedown", (e) => e.preventDefault()); // what is marked stays so
		b.addEventListener("click", () => act(b.dataset.key));
	});
	at("correction").addEventListener("submit", (e) => {
		e.preventDefault();
		const text = at("right").value.trim();
		if (!text) return;
		at("right").blur();
		correct(queue.items[now], text);
	});
	load().catch(() => trouble(words.failed));
})();
