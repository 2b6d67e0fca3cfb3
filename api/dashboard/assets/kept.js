// What this browser keeps of the workbench: schema, documents and versions, also over a restart of
// the server, and for the form of a new job. Nothing of it is sent by itself.
"use strict";
const coditectKept = (() => {
	const key = "sample";
	function open() {
		return new Promise((resolve, reject) => {
			const request = indexedDB.open("coditect" + document.getElementById("main").dataset.prefix, 1);
			request.onupgradeneeded = () => request.result.createObjectStore("try");
			request.onsuccess = () => resolve(request.result);
			request.onerror = () => reject(request.error);
			request.onblocked = () => reject(new Error("blocked"));
		});
	}
	async function use(mode, call) {
		const database = await open();
		try {
			return await new Promise((resolve, reject) => {
				const action = database.transaction("try", mode);
				const request = call(action.objectStore("try"));
				action.oncomplete = () => resolve(request.result);
				action.onerror = action.onabort = () => reject(action.error);
			});
		} finally {
			database.close();
		}
	}
	return {
		read: () => use("readonly", (store) => store.get(key)),
		write: (value) => use("readwrite", (store) => store.put(value, key)),
	};
})();
