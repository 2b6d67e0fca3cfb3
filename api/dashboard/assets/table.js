// A table of all units of a job, of which the page holds some hundred rows: those in sight, and some
// before and behind them. Without this script it is a list of pages.
"use strict";
(() => {
	const part = document.getElementById("part-units");
	const scroll = part && part.querySelector("[data-index]");
	if (!scroll) return;

	const ofBlock = 100; // rows that are read at once: those of a page of the list
	const kept = 30; // blocks that are kept
	const tallest = 30000000; // pixels: browsers draw nothing that is taller

	const table = scroll.querySelector("table");
	const body = table.tBodies[0];
	const columns = table.tHead.rows[0].cells.length;
	const before = gap();
	const behind = gap();
	let lines = []; // where units begin: how many are before, and the token of the page that begins there
	let total = 0;
	let height = 0; // of a row, in pixels
	let blocks = new Map(); // rows by number of the block, those used last at the end
	let asked = new Set();

	function gap() {
		const row = document.createElement("tr");
		row.setAttribute("aria-hidden", "true");
		row.append(document.createElement("td"));
		row.firstChild.colSpan = columns;
		row.className = "gap";
		return row;
	}

	// readIndex reads where units begin, and how many there are. What is known is shown while the rest is read; a line
	// that is the first one again begins with what is newer. It reports whether there was such a one.
	async function readIndex() {
		const known = (some, count) => {
			[lines, total] = [some, count];
			show();
			table.setAttribute("aria-rowcount", String(total + 1));
		};
		let anew = false;
		let fresh = [];
		let count = 0;
		let seen = performance.now();
		for await (const some of coditectLines(scroll.dataset.index)) {
			for (const { states, at, first } of some) {
				if (first === 0 && fresh.length > 0) {
					if (count > total) known(fresh, count);
					fresh = [];
					anew = true;
				}
				fresh.push({ first, at });
				count = first + states.length;
			}
			if (count > total && performance.now() - seen > 200) {
				known(fresh, count);
				seen = performance.now();
			}
		}
		[lines, total] = [fresh, count];
		return anew;
	}

	// lineOf returns the line in which a unit is.
	function lineOf(unit) {
		let [low, high] = [0, lines.length];
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if (lines[middle].first <= unit) low = middle; else high = middle;
		}
		return lines[low] || { first: 0, at: "" };
	}

	async function readBlock(block) {
		const to = new URL(scroll.dataset.rows, location.href);
		const first = block * ofBlock;
		const line = lineOf(first);
		if (line.at) to.searchParams.set("page", line.at);
		if (first > line.first) to.searchParams.set("skip", String(first - line.first));
		const answer = await fetch(to.href, { headers: { Accept: "text/html" } });
		if (!answer.ok) throw new Error(String(answer.status));
		const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
		const rows = [...fresh.querySelectorAll("#part-units tbody tr")].map((row) => document.importNode(row, true));
		rows.forEach((row, i) => row.setAttribute("aria-rowindex", String(first + i + 2)));
		return rows;
	}

	// want returns the rows of a block if they are there, and else asks for them.
	function want(block) {
		const rows = blocks.get(block);
		if (rows) {
			blocks.delete(block);
			blocks.set(block, rows);
			return rows;
		}
		if (!asked.has(block)) {
			asked.add(block);
			const of = blocks;
			readBlock(block).then((read) => {
				if (of !== blocks) return; // the job has moved meanwhile
				blocks.set(block, read);
				for (const old of blocks.keys()) if (blocks.size > kept) blocks.delete(old); else break;
				show();
			}, () => {}).finally(() => { if (of === blocks) asked.delete(block); });
		}
		return null;
	}

	// show puts the rows in sight into the table. Where a table of all rows would be too tall, each
	// pixel stands for several rows.
	function show() {
		const whole = Math.min(total * height, tallest);
		const sight = scroll.clientHeight - table.tHead.offsetHeight; // the head stays in sight
		const inSight = Math.max(1, Math.floor(sight / height));
		const room = Math.max(1, whole - sight);
		const top = Math.round((Math.min(scroll.scrollTop, room) / room) * Math.max(0, total - inSight));
		const firstBlock = Math.max(0, Math.floor(top / ofBlock) - (top % ofBlock < inSight ? 1 : 0));
		const lastBlock = Math.min(Math.ceil(total / ofBlock) - 1, Math.floor((top + 2 * inSight) / ofBlock));

		const rows = [];
		let missing = false;
		let first = firstBlock * ofBlock;
		for (let b = firstBlock; b <= lastBlock; b++) {
			const read = want(b);
			if (read) rows.push(...read);
			else if (rows.length === 0) first = (b + 1) * ofBlock;
			else { missing = true; break; }
		}
		scroll.setAttribute("aria-busy", String(missing || rows.length === 0));
		if (rows.length === 0) return; // what was shown stays until they are there

		// The row at the top of the sight stands where the scroll bar says.
		const above = Math.max(0, Math.min(scroll.scrollTop, room) - (top - first) * height);
		before.firstChild.style.height = above + "px";
		behind.firstChild.style.height = Math.max(0, whole - above - rows.length * height) + "px";
		const had = document.activeElement && body.contains(document.activeElement) ? document.activeElement.closest("tr").dataset.key : "";
		body.replaceChildren(before, ...rows, behind);
		if (had) for (const row of rows) if (row.dataset.key === had) row.querySelector("a").focus({ preventScroll: true });
		scroll.dataset.shown = first + "-" + (first + rows.length);
	}

	// The table is read again when the job has moved.
	let first = true;
	let shape = null; // of the job when the index was read
	// Where units begin depends on how many there are, and on their states where only some of these are shown.
	const chosen = new URL(scroll.dataset.index, location.href).searchParams.has("state");
	async function refresh() {
		const is = document.getElementById("part-head").dataset.shape;
		// The rows that came with the page are those of the first block.
		const begins = first;
		first = false;
		if (begins) blocks = new Map([[0, [...body.rows]]]);
		const anew = (chosen || is !== shape) && await readIndex();
		shape = is;
		if (!begins || anew) blocks = new Map();
		asked = new Set();
		show();
		table.setAttribute("aria-rowcount", String(total + 1));
	}

	// From here on the table is this script's: what the server sends of the part finds none.
	part.id = "table-units";
	part.querySelector(".pages").hidden = true;
	scroll.classList.add("tall", "even");
	[...body.rows].forEach((row, i) => row.setAttribute("aria-rowindex", String(i + 2)));
	height = body.rows[0].getBoundingClientRect().height;
	let drawing = false;
	scroll.addEventListener("scroll", () => {
		if (drawing) return;
		drawing = true;
		requestAnimationFrame(() => { drawing = false; show(); });
	});
	window.addEventListener("resize", show);
	coditectFollow(refresh);
})();
