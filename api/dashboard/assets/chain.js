// Computes the chain of a job's log again, in the browser of whoever reads it: each seal is the
// SHA-256 of the seal before it, or of what the chain begins with, and of the checkpoints that it
// covers.
"use strict";
(() => {
	const button = document.getElementById("chain");
	const outcome = document.getElementById("chain-outcome");
	const say = (name, ...fill) => {
		let text = button.dataset[name];
		for (const f of fill) text = text.replace("%s", f);
		outcome.textContent = text;
		outcome.className = name === "unbroken" ? "good" : name === "busy" ? "" : "bad";
	};
	const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
	const hash = async (parts) => {
		const whole = new Uint8Array(parts.reduce((n, p) => n + p.length, 0));
		let at = 0;
		for (const p of parts) { whole.set(p, at); at += p.length; }
		return new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
	};
	const equal = (a, b) => a.length === b.length && a.every((x, i) => x === b[i]);

	async function verify() {
		if (!window.isSecureContext) { say("insecure"); return; }
		say("busy");
		let before = null;
		let covered = [];
		let events = 0;
		let seals = 0;
		for await (const lines of coditectLines(button.dataset.proofs)) {
			for (const line of lines) {
				if (line.origin) before = bytes(line.origin);
				else if (line.seal) {
					const parts = [before];
					if (covered.length !== line.seal.count) { say("broken", line.seal.number); return; }
					for (const c of covered) parts.push(bytes(c.key), await hash([bytes(c.record)]));
					const link = await hash(parts);
					if (!equal(link, bytes(line.seal.hash))) { say("broken", line.seal.number); return; }
					before = link;
					covered = [];
					seals++;
				} else {
					covered.push(line);
					events++;
				}
			}
		}
		const head = seals ? Array.from(before, (b) => b.toString(16).padStart(2, "0")).join("") : "";
		if (button.dataset.head && covered.length === 0 && head !== button.dataset.head) { say("broken", seals); return; }
		say("unbroken", String(events - covered.length), String(seals), String(covered.length));
	}
	button.hidden = false;
	button.addEventListener("click", () => verify().catch((e) => { outcome.textContent = e.message; }));
})();
