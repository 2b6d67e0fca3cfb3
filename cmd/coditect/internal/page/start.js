	// ---- all parts of the page, in their order

	if (data.report) writeReport();
	else setUpRecords();
	setUpDocuments();
	picturesSection();
	seenSection();
	unverifiedSection();
	conflictsSection();
	for (const list of data.lists) {
		listSection(list.id, list.title, list.columns, list.rows.length, list.more || 0, (i) => list.rows[i].map(quoted));
	}
	byId("sections").append(...[...document.querySelectorAll("main section")].map((section) =>
		element("li", {}, element("a", { href: "#" + section.id }, section.querySelector("h2").textContent))));

