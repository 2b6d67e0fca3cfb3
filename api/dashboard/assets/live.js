// Keeps an open page up to date: the server sends its parts, each whole, and here each is made
// what the server says, without touching what is the same already. So the focus, what was typed
// and what was opened stay.
"use strict";
(() => {
	const main = document.getElementById("main");
	const pause = document.getElementById("pause");
	const connection = document.getElementById("connection");
	const announce = document.getElementById("announce");
	showTimes(document);
	window.coditectPatch = patch;
	// What a script asks for in vain as nobody is signed in any more leads to where one signs in, and back. It
	// reports whether there is such a place.
	window.coditectSignIn = () => {
		if (!main.dataset.signIn) return false;
		location.href = main.dataset.signIn + "?to=" + encodeURIComponent(location.pathname.slice(main.dataset.prefix.length) + location.search);
		return true;
	};
	// coditectDoor is a link to where one signs in, in another tab: what stands in this one stays.
	window.coditectDoor = (text) => {
		const link = document.createElement("a");
		link.href = main.dataset.signIn;
		link.target = "_blank";
		link.rel = "noopener";
		link.textContent = text;
		return link;
	};
	// coditectLines yields what an address answers, a value of JSON a line, and a list of them at a time, as they come.
	window.coditectLines = async function* (address) {
		const answer = await fetch(address, { headers: { Accept: "application/jsonl" } });
		if (!answer.ok) throw new Error(await answer.text());
		const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
		let rest = "";
		try {
			for (;;) {
				const { done, value } = await reader.read();
				if (done) return;
				const lines = (rest + value).split("\n");
				rest = lines.pop();
				yield lines.map((line) => JSON.parse(line));
			}
		} finally {
			reader.cancel().catch(() => {}); // whoever reads has enough
		}
	};
	// coditectFollow reads something of a job again when that has moved since a version of it: soon if that is
	// quick, and else after up to ten times as long as it takes, without a step between the two.
	window.coditectFollow = (read, version = "") => {
		let busy = false;
		async function refresh() {
			const head = document.getElementById("part-head");
			if (busy || !head || head.dataset.version === version) return;
			busy = true;
			version = head.dataset.version;
			const began = performance.now();
			try { await read(); } catch { version = ""; }
			const took = performance.now() - began;
			setTimeout(() => { busy = false; refresh(); }, Math.max(200, 10 * took - 1500));
		}
		document.addEventListener("patched", refresh);
		refresh();
	};
	if (!main.dataset.live) return;

	let source = null;
	let lostAt = null;
	let failed = false; // and it has been said
	const paused = () => pause.getAttribute("aria-pressed") === "true";

	function open() {
		if (source) source.close();
		pause.hidden = false;
		source = new EventSource(main.dataset.live);
		source.addEventListener("part", (event) => {
			found();
			const part = JSON.parse(event.data);
			const old = document.getElementById("part-" + part.name);
			const parsed = new DOMParser().parseFromString(part.html, "text/html");
			const fresh = parsed.getElementById("part-" + part.name);
			if (!old || !fresh) return;
			patch(old, fresh);
			showTimes(old);
			old.dispatchEvent(new CustomEvent("patched", { bubbles: true }));
			say(old);
		});
		source.addEventListener("failed", (event) => {
			failed = true;
			connection.textContent = main.dataset.failed + " " + JSON.parse(event.data);
		});
		// It is in vain to ask again by itself: the reader decides.
		source.addEventListener("ended", (event) => {
			const why = JSON.parse(event.data);
			source.close();
			pause.hidden = true;
			connection.textContent = main.dataset[why === "signed-out" ? "signedOut" : why] + " ";
			if (why === "signed-out") connection.append(coditectDoor(main.dataset.door));
			if (why !== "other") return;
			const again = document.createElement("a");
			again.href = location.href;
			again.textContent = main.dataset.reload;
			connection.append(again);
		});
		source.addEventListener("open", () => { if (!failed) found(); });
		source.addEventListener("error", () => {
			if (lostAt === null) lostAt = new Date();
			connection.textContent = main.dataset.lost.replace("%s", lostAt.toLocaleTimeString());
			// The browser gives up where the answer is no stream, as a proxy's is while the server is away.
			if (source.readyState === EventSource.CLOSED && !paused()) setTimeout(() => { if (!paused() && !document.hidden) open(); }, 1000);
		});
	}
	function found() {
		if (lostAt !== null || failed) connection.textContent = "";
		lostAt = null;
		failed = false;
	}

	pause.addEventListener("click", () => {
		pause.setAttribute("aria-pressed", String(!paused()));
		if (paused()) {
			source.close();
			connection.textContent = main.dataset.paused.replace("%s", new Date().toLocaleTimeString());
		} else {
			connection.textContent = "";
			open();
		}
	});
	// A browser has six connections to a server for all its pages, and one that nobody sees needs none: it is brought up
	// to date when somebody looks.
	document.addEventListener("visibilitychange", () => {
		if (paused()) return;
		source.close();
		// Somebody who was signed out comes back from another tab, where the sign-in was.
		if (!document.hidden) open();
	});
	window.addEventListener("pagehide", () => source.close());
	window.addEventListener("pageshow", (event) => { if (event.persisted && !paused()) open(); });
	open();

	// say tells readers that cannot see the page what has changed, every few seconds at most.
	let nextSay = 0;
	let waiting = null;
	function say(part) {
		const text = part.querySelector("[data-say]");
		if (!text || text.textContent === announce.textContent) return;
		clearTimeout(waiting);
		waiting = setTimeout(() => {
			announce.textContent = text.textContent;
			nextSay = Date.now() + 5000;
		}, Math.max(0, nextSay - Date.now()));
	}

	// patch makes an element what another is.
	function patch(old, fresh) {
		for (const { name } of [...old.attributes]) {
			if (!fresh.hasAttribute(name) && !(name === "open" && old.tagName === "DETAILS")) old.removeAttribute(name);
		}
		for (const { name, value } of fresh.attributes) {
			if (old.getAttribute(name) !== value) old.setAttribute(name, value);
		}
		const keyed = new Map();
		for (const child of old.children) if (child.dataset && child.dataset.key) keyed.set(child.dataset.key, child);
		let at = old.firstChild;
		for (const want of [...fresh.childNodes]) {
			const key = want.nodeType === Node.ELEMENT_NODE && want.dataset ? want.dataset.key : undefined;
			const known = key !== undefined ? keyed.get(key) : undefined;
			if (known && known !== at) old.insertBefore(known, at);
			const have = known || at;
			if (!have || have.nodeName !== want.nodeName || (!known && keyOf(have) !== keyOf(want))) {
				old.insertBefore(document.importNode(want, true), at);
				continue;
			}
			if (have.nodeType === Node.ELEMENT_NODE) patch(have, want);
			else if (have.nodeValue !== want.nodeValue) have.nodeValue = want.nodeValue;
			at = have.nextSibling;
		}
		while (at) {
			const next = at.nextSibling;
			at.remove();
			at = next;
		}
	}
	function keyOf(node) {
		return node.nodeType === Node.ELEMENT_NODE && node.dataset ? node.dataset.key || "" : "";
	}

	// showTimes writes the times of a part in the time of the reader.
	function showTimes(part) {
		for (const time of part.querySelectorAll("time[datetime]")) {
			const at = time.getAttribute("datetime");
			if (at && time.textContent === at) time.textContent = new Date(at).toLocaleString();
			if (at) time.title = at;
		}
	}
})();
