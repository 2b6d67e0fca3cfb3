// The form for a new job: what it would cost first, and what was typed stays whatever goes wrong.
"use strict";
(() => {
	const form = document.getElementById("new");
	const outcome = document.getElementById("outcome");
	const buttons = [document.getElementById("plan"), document.getElementById("submit")];
	const request = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);

	async function send(path, show) {
		if (!form.reportValidity()) return;
		buttons.forEach((b) => { b.disabled = true; });
		outcome.textContent = form.dataset.busy;
		const data = new FormData(form);
		data.set("request", request);
		try {
			const answer = await fetch(path, { method: "POST", body: data, headers: { Accept: "application/json" } });
			const text = await answer.text();
			if (answer.status === 401) signIn(text);
			else if (answer.ok) show(JSON.parse(text));
			else fail(text);
		} catch {
			fail(form.dataset.broken);
		}
		buttons.forEach((b) => { b.disabled = false; });
	}
	function fail(text) {
		const p = document.createElement("p");
		p.className = "bad";
		p.textContent = text;
		outcome.replaceChildren(p);
	}
	// signIn leads to where one signs in, in another tab: the files that were chosen stay here.
	function signIn(text) {
		fail(text);
		if (document.getElementById("main").dataset.signIn) outcome.append(coditectDoor(form.dataset.signIn));
	}
	document.getElementById("plan").addEventListener("click", () => send(form.dataset.plan, (plan) => {
		const p = document.createElement("p");
		p.textContent = form.dataset.planned.replace("%units", plan.units).replace("%calls", plan.calls).replace("%tokens", plan.tokens)
			.replace("%cost", plan.cost).replace("%most", plan.most_cost);
		const ul = document.createElement("ul");
		for (const warning of plan.warnings) {
			const li = document.createElement("li");
			li.textContent = warning;
			ul.append(li);
		}
		outcome.replaceChildren(p, ul);
	}));
	// What was tried comes with its documents, as they were chosen.
	if (new URLSearchParams(location.search).get("from") === "try") {
		coditectKept.read().then((kept) => {
			if (!kept) return;
			form.elements.schema.value = kept.schema || "";
			const chosen = new DataTransfer();
			for (const d of kept.documents || []) chosen.items.add(d.file || new File([d.text], d.name, { type: "text/plain" }));
			form.elements.documents.files = chosen.files;
			form.dataset.filled = "1";
		}, () => fail(form.dataset.broken));
	}
	form.addEventListener("submit", (event) => {
		event.preventDefault();
		send(form.action, (answer) => { location.href = answer.job; });
	});
})();
