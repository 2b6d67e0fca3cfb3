// Shows a picture, or a page that is drawn, at any size, with boxes around a passage. Boxes are in pixels
// of the picture, or in points of the page, and are placed in hundredths of it, so that they stand where
// they belong at every size.
"use strict";
const coditectPicture = (figure) => {
	const frame = figure.querySelector(".frame");
	const sheet = figure.querySelector(".sheet");
	const image = sheet.querySelector("img");
	const note = figure.querySelector("[role=status]");
	const buttons = figure.querySelectorAll("button");
	let boxes = [];
	let size = null; // of the page: width and height, in the unit of boxes
	let turns = 0; // pages that were to be shown: only the last one counts

	// setWidth makes the picture so many pixels wide, and shows what is in the middle of the passage.
	function setWidth(width) {
		sheet.style.width = Math.min(Math.max(width, 50), 16 * image.naturalWidth) + "px";
		const scale = sheet.clientWidth / size[0];
		const [left, top, right, bottom] = extent();
		frame.scrollLeft = scale * (left + right) / 2 - frame.clientWidth / 2;
		frame.scrollTop = scale * (top + bottom) / 2 - frame.clientHeight / 2;
	}

	// extent is the box around all boxes.
	function extent() {
		const all = (pick, of) => of(...boxes.map((box) => box[pick]));
		return [all(0, Math.min), all(1, Math.min), all(2, Math.max), all(3, Math.max)];
	}

	// The passage takes half of the frame, if that is no more than four times its size.
	function crop() {
		const [left, top, right, bottom] = extent();
		const scale = Math.min(frame.clientWidth / 2 / (right - left || 1), frame.clientHeight / 2 / (bottom - top || 1));
		setWidth(Math.min(scale * size[0], 4 * image.naturalWidth));
	}

	const sizes = {
		crop,
		whole: () => setWidth(Math.min(frame.clientWidth, frame.clientHeight * size[0] / size[1])),
		larger: () => setWidth(sheet.clientWidth * 1.5),
		smaller: () => setWidth(sheet.clientWidth / 1.5),
	};
	for (const button of buttons) button.addEventListener("click", () => { if (size) sizes[button.dataset.size](); });

	// place puts the boxes onto the page.
	function place() {
		const share = (n, of) => 100 * n / of + "%";
		for (const [left, top, right, bottom] of boxes) {
			const mark = document.createElement("span");
			mark.className = "box";
			mark.setAttribute("aria-hidden", "true"); // the text of the picture says what stands there
			mark.style.left = share(left, size[0]);
			mark.style.top = share(top, size[1]);
			mark.style.width = share(right - left, size[0]);
			mark.style.height = share(bottom - top, size[1]);
			sheet.append(mark);
		}
	}

	// sizeOf returns the size of what is at an address: that of a page that was drawn stands beside it.
	async function sizeOf(path) {
		const { headers } = await fetch(path, { method: "HEAD" });
		return [Number(headers.get("Page-Width")) || image.naturalWidth, Number(headers.get("Page-Height")) || image.naturalHeight];
	}

	// show shows what is at an address, with boxes, of which numbers has the edges, and what stands in them
	// for those who do not see it.
	async function show(path, numbers, says) {
		const turn = ++turns;
		size = null;
		boxes = [];
		for (let i = 0; i + 3 < numbers.length; i += 4) boxes.push(numbers.slice(i, i + 4));
		sheet.querySelectorAll(".box").forEach((box) => box.remove());
		buttons.forEach((button) => { button.hidden = true; });
		image.alt = says;
		note.textContent = "";
		figure.dataset.state = "waits";
		if (image.getAttribute("src") !== path) image.src = path;
		try {
			await image.decode();
			const is = await sizeOf(path);
			if (turn !== turns) return;
			size = is;
		} catch {
			if (turn === turns) await fail(path, turn);
			return;
		}
		place();
		buttons.forEach((button) => { button.hidden = false; });
		figure.hidden = frame.hidden = false;
		crop();
		figure.dataset.state = "shown";
	}

	// fail says why there is no picture.
	async function fail(path, turn) {
		const answer = await fetch(path).catch(() => null);
		if (turn !== turns) return;
		const why = answer && !answer.ok ? await answer.text() : "";
		if (turn !== turns) return;
		figure.hidden = !(frame.hidden = true);
		note.textContent = figure.dataset.failed + (why ? " " + why : "");
		figure.dataset.state = "failed";
	}

	// hide shows nothing any more.
	function hide() {
		turns++;
		figure.hidden = true;
		figure.dataset.state = "none";
	}

	return { show, hide };
};

// The picture of a page that has one from the beginning.
document.querySelectorAll("figure.picture[data-boxes]").forEach((figure) => {
	const image = figure.querySelector("img");
	coditectPicture(figure).show(image.getAttribute("src"), figure.dataset.boxes.split(" ").map(Number), image.alt);
});
