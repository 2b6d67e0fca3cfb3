// What pages do beside showing: asking before what cannot be undone, saved views of lists, and the
// grid of a job's units.
"use strict";
(() => {
	document.addEventListener("submit", (event) => {
		const form = event.target;
		const question = form.dataset.confirm;
		if (question && !window.confirm(question)) event.preventDefault();
		else if (form.dataset.act !== undefined) {
			event.preventDefault();
			act(form);
		}
	});

	// act asks for what a form is for, and leads on. If it is refused, or nobody answers, the page says so, and what was
	// typed stays.
	async function act(form) {
		const said = document.getElementById("said");
		const say = (text) => { said.textContent = text; said.hidden = !text; };
		const button = form.querySelector("button");
		button.disabled = true;
		// What takes long, such as to put back all units that failed for a cause, says how far it is.
		let reported = -Infinity; // when
		const report = () => {
			if (performance.now() - reported < 5000) return; // it is read to those who do not see it
			reported = performance.now();
			const head = document.querySelector("#part-head [data-say]");
			said.className = "dim";
			say(said.dataset.busy + " " + (head ? head.textContent : ""));
		};
		const slow = setTimeout(() => { report(); document.addEventListener("patched", report); }, 1000);
		const answered = () => {
			clearTimeout(slow);
			document.removeEventListener("patched", report);
			said.className = "bad";
		};
		try {
			const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" } });
			const text = (await answer.text()).trim();
			answered();
			if (answer.ok) {
				say("");
				location.href = JSON.parse(text).to;
			} else {
				say(text + " ");
				if (answer.status === 401 && document.getElementById("main").dataset.signIn) said.append(coditectDoor(said.dataset.door));
			}
		} catch {
			answered();
			say(said.dataset.broken);
		}
		button.disabled = false;
	}

	// ---- saved views: names for the addresses of lists, kept in this browser

	for (const place of document.querySelectorAll("[data-views]")) showViews(place);

	function showViews(place) {
		const key = "coditect.views." + place.dataset.views;
		let views = [];
		try { views = JSON.parse(localStorage.getItem(key)) || []; } catch { views = []; }
		const keep = () => { try { localStorage.setItem(key, JSON.stringify(views)); } catch { /* a browser may keep nothing */ } };
		place.replaceChildren();
		for (const view of views) {
			const link = document.createElement("a");
			link.href = location.pathname + view.query;
			link.textContent = view.name;
			const forget = document.createElement("button");
			forget.type = "button";
			forget.textContent = "×";
			forget.setAttribute("aria-label", place.dataset.forget + " " + view.name);
			forget.addEventListener("click", () => { views = views.filter((v) => v !== view); keep(); showViews(place); });
			place.append(link, " ", forget, " ");
		}
		const save = document.createElement("button");
		save.type = "button";
		save.textContent = place.dataset.save;
		save.addEventListener("click", () => {
			const name = window.prompt(place.dataset.name);
			if (!name) return;
			views.push({ name, query: location.search });
			keep();
			showViews(place);
		});
		place.append(save);
	}

	// ---- the grid of units

	const canvas = document.getElementById("grid");
	if (!canvas) return;
	const note = document.getElementById("grid-note");
	const order = "?bwprcfx";
	const names = ["", "blocked", "pending", "parked", "processing", "complete", "failed", "cancelled"];
	const mostDots = 100000;

	// The states of all units, a byte for each, and where pages of them begin.
	let states = new Uint8Array(0);
	let pages = []; // {first, token}
	let here = 0; // the unit that the keyboard is at

	async function load() {
		let fresh = new Uint8Array(Math.max(1024, states.length));
		let n = 0;
		let freshPages = [];
		let drawn = -Infinity; // when
		function show() {
			states = fresh.subarray(0, n);
			pages = freshPages;
			draw();
			drawn = performance.now();
		}
		try {
			for await (const parts of coditectLines(canvas.dataset.grid)) {
				for (const part of parts) {
					// What was known has come before, and now comes what is newer.
					if (part.first === 0 && n > 0) {
						if (n > states.length) show();
						fresh = new Uint8Array(fresh.length);
						freshPages = [];
					}
					n = part.first;
					if (n + part.states.length > fresh.length) {
						const larger = new Uint8Array(Math.max(2 * fresh.length, n + part.states.length));
						larger.set(fresh);
						fresh = larger;
					}
					freshPages.push({ first: n, token: part.at });
					for (let i = 0; i < part.states.length; i++) fresh[n++] = Math.max(0, order.indexOf(part.states[i]));
				}
				if (n > states.length && performance.now() - drawn > 200) show();
			}
		} catch (error) {
			note.textContent = error.message;
			throw error;
		}
		show();
	}

	let layout = { columns: 1, size: 1, each: 1 };
	function draw() {
		const ratio = window.devicePixelRatio || 1;
		const width = canvas.clientWidth;
		const each = Math.max(1, Math.ceil(states.length / mostDots));
		const dots = Math.ceil(states.length / each);
		let size = 14;
		while (size > 3 && Math.ceil(dots / Math.floor(width / size)) * size > 420) size--;
		const columns = Math.max(1, Math.floor(width / size));
		const rows = Math.max(1, Math.ceil(dots / columns));
		layout = { columns, size, each };
		canvas.style.height = rows * size + 8 + "px";
		canvas.width = width * ratio;
		canvas.height = (rows * size + 8) * ratio;
		const g = canvas.getContext("2d");
		g.scale(ratio, ratio);
		const style = getComputedStyle(document.documentElement);
		const colors = names.map((name) => name ? style.getPropertyValue("--" + name).trim() : "#000");
		const gap = size > 5 ? 2 : size > 3 ? 1 : 0;
		for (let d = 0; d < dots; d++) {
			g.fillStyle = colors[worst(d * each, Math.min(states.length, (d + 1) * each))];
			g.fillRect((d % columns) * size + 4, Math.floor(d / columns) * size + 4, size - gap, size - gap);
		}
		if (document.activeElement === canvas && states.length) {
			const d = Math.floor(here / each);
			g.strokeStyle = style.getPropertyValue("--text");
			g.lineWidth = 2;
			g.strokeRect((d % columns) * size + 3, Math.floor(d / columns) * size + 3, size, size);
		}
		canvas.dataset.drawn = String(states.length);
	}

	// worst is the state that a dot of several units shows: a failed one is seen among thousands.
	const weight = [0, 2, 3, 5, 6, 1, 7, 4];
	function worst(from, to) {
		let state = 0;
		for (let i = from; i < to; i++) if (weight[states[i]] > weight[state] || state === 0) state = states[i];
		return state;
	}

	function go(unit) {
		if (unit < 0 || unit >= states.length) return;
		let page = pages[0];
		for (const p of pages) if (p.first <= unit) page = p; else break;
		const to = new URL(canvas.dataset.units, location.href);
		if (page.token) to.searchParams.set("page", page.token);
		to.searchParams.set("skip", String(unit - page.first));
		location.href = to.href;
	}
	canvas.addEventListener("click", (event) => {
		const box = canvas.getBoundingClientRect();
		const column = Math.floor((event.clientX - box.left - 4) / layout.size);
		const row = Math.floor((event.clientY - box.top - 4) / layout.size);
		if (column >= 0 && column < layout.columns) go((row * layout.columns + column) * layout.each);
	});
	canvas.addEventListener("keydown", (event) => {
		const step = { ArrowRight: layout.each, ArrowLeft: -layout.each, ArrowDown: layout.columns * layout.each, ArrowUp: -layout.columns * layout.each }[event.key];
		if (event.key === "Enter") { go(here); return; }
		if (step === undefined) return;
		event.preventDefault();
		here = Math.min(Math.max(0, here + step), Math.max(0, states.length - 1));
		draw();
		note.textContent = "#" + (here + 1) + ": " + (names[states[here]] || "");
	});
	canvas.addEventListener("focus", draw);
	canvas.addEventListener("blur", draw);
	window.addEventListener("resize", draw);
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

	coditectFollow(load);
})();
